package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sendTrain delivers n segments of 1000 bytes as one train.
func (s *script) sendTrain(seq uint32, n int) {
	s.t.Helper()
	g := s.segment(ACK, seq, 1, 1000*n, 65535)
	g.Count = n
	s.h.Input(s.now, &g)
}

func TestRFC5681_4_2_TrainsAfterAGap(t *testing.T) {
	s := newScript(t, Config{})
	s.accept(fullOptions)
	s.sendTrain(1, 10)
	s.expect(ACK, 1, 10001, 0)
	s.quiet() // without a gap, the receiver sends one acknowledgment per train
	s.sendTrain(11001, 5)
	s.expect(ACK, 1, 10001, 0)
	s.expect(ACK, 1, 10001, 0)
	s.quiet()
	s.send(ACK, 17001, 1, 1000)
	s.expect(ACK, 1, 10001, 0)
	s.quiet() // "MUST NOT generate more than one immediate ACK for every incoming segment"
	s.send(ACK, 10001, 1, 1000)
	s.expect(ACK, 1, 16001, 0)
	s.quiet()
	s.send(ACK, 16001, 1, 1000)
	s.expect(ACK, 1, 18001, 0)
	s.quiet()
	s.read(1 << 20)
	seq := uint32(18001)
	for range initialQuickAcks - 1 {
		s.sendTrain(seq, 2)
		seq += 2000
		s.expect(ACK, 1, seq, 0)
		s.expect(ACK, 1, seq, 0)
		s.quiet()
	}
	s.sendTrain(seq, 2)
	s.expect(ACK, 1, seq+2000, 0)
	s.quiet() // the gap was filled long ago
}

// TestLostACKsOfTrains checks that delayed acknowledgments do not cause timeouts on a lossy path.
// With one acknowledgment for all data within 60 µs and 10 % loss each way, one probe or timeout
// was needed for every 40 segments.
func TestLostACKsOfTrains(t *testing.T) {
	var sent, acks int
	var silences uint64
	for seed := range uint64(10) {
		w := newWorld(t, seed+1, lossyTrains(0.1), course())
		a, b := w.connect()
		w.segs = [2]int{}
		s := newStream(a, b, 1<<62)
		s.keepOpen = true
		w.transfer(100*time.Millisecond, s)
		i := a.Info()
		sent, acks = sent+w.segs[0], acks+w.segs[1]
		silences += i.TotalRTO + i.TailProbes
	}
	t.Logf("%d segments, %d acknowledgments, %d silences", sent, acks, silences)
	require.Greater(t, sent, 5000)
	assert.Less(t, silences*1000/uint64(sent), uint64(14))
	assert.Less(t, acks*10/sent, 7)
}

// lossyTrains is a link with a round trip of 150 µs. Its receivers poll every 60 µs.
func lossyTrains(loss float64) wire {
	return wire{
		delay: 75 * time.Microsecond, loss: loss, merge: true, bytesPerSec: 500e6,
		every: 60 * time.Microsecond, pause: 60*time.Microsecond - 1,
	}
}

// TestSingleSegmentsAreDelayed checks that single segments get delayed acknowledgments. With a
// minimum RTO of a millisecond, which nodes have, every pause is longer than the RTO, and each
// segment used to count as the first of a new flight.
func TestSingleSegmentsAreDelayed(t *testing.T) {
	for _, n := range []int{1000, 100} {
		s := newScript(t, Config{Knobs: Knobs{Recovery: Recovery{RTOMin: time.Millisecond}}})
		s.accept(fullOptions)
		atOnce, later := 0, 0
		for seq := 1; seq < 40*n; seq += n {
			s.send(ACK|PSH, uint32(seq), 1, n)
			s.read(n)
			s.collect()
			atOnce += len(s.out)
			s.out = nil
			s.wait(100 * time.Millisecond)
			later += len(s.out)
			s.out = nil
		}
		assert.Equal(t, 4, atOnce)
		assert.Equal(t, 36, later)
	}
}
