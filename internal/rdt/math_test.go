package rdt_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rdt"
)

const ms = time.Millisecond

// Selective repeat transmits N packets N/(1-p) times in all, with a variance of Np/(1-p)². It
// retransmits exactly the lost packets.
func TestExpectedTransmissions(t *testing.T) {
	const n = 3001
	objects := [][]byte{text(1, 3000*200)}
	for _, p := range []float64{0, .05, .1, .15, .3, .5} {
		for seed := range uint64(5) {
			cfg := rdt.Config{Payload: 200, Window: 100, Selective: true, Push: true}
			s, r := pair(t, cfg, objects)
			w := newWorld(t, s, r, seed, wire{loss: p, delay: ms}, wire{delay: ms})
			w.run(func() bool { return s.Done() })
			info := s.Info()
			sigma := math.Sqrt(n*p) / (1 - p)
			assert.InDelta(t, n/(1-p), float64(info.Sent), 4*sigma, "p %g, seed %d", p, seed)
			assert.Equal(t, uint64(w.wires[0].lost), info.Resent, "p %g, seed %d", p, seed)
			assert.Equal(t, uint64(n), info.Sent-info.Resent)
		}
	}
}

// The document's cumulative acknowledgments need more transmissions, because the sender cannot know
// which packets arrived after a gap.
func TestCumulativeAcknowledgmentsCostMore(t *testing.T) {
	objects := [][]byte{text(1, 3000*200)}
	for seed := range uint64(3) {
		var resent [2]uint64
		for i, selective := range []bool{false, true} {
			cfg := rdt.Config{Payload: 200, Window: 100, Selective: selective, Push: true}
			s, r := pair(t, cfg, objects)
			w := newWorld(t, s, r, seed, wire{loss: .1, delay: ms}, wire{delay: ms})
			w.run(func() bool { return s.Done() })
			assert.GreaterOrEqual(t, s.Info().Resent, uint64(w.wires[0].lost))
			resent[i] = s.Info().Resent
		}
		assert.Greater(t, resent[0], resent[1])
	}
}

// A window of one packet is stop-and-wait: each success takes a round trip, and each failure a
// timeout. With loss p in both directions, a packet is sent 1/(1-p)² times.
func TestStopAndWait(t *testing.T) {
	const n = 1001
	for _, p := range []float64{0, .1, .3} {
		for seed := range uint64(5) {
			cfg := rdt.Config{Payload: 100, Window: 1, Push: true, Timeout: 50 * ms}
			s, r := pair(t, cfg, [][]byte{text(1, 1000*100)})
			w := newWorld(t, s, r, seed, wire{loss: p, delay: 3 * ms}, wire{loss: p, delay: 4 * ms})
			w.run(func() bool { return s.Done() })
			require.NoError(t, s.Err())
			info := s.Info()
			q := (1 - p) * (1 - p)
			assert.InDelta(t, n/q, float64(info.Sent), 4*math.Sqrt(n*(1-q))/q)
			assert.Equal(t, n*7*ms+time.Duration(info.Resent)*50*ms, w.now.Sub(start))
			assert.Equal(t, info.Resent, info.TimedOut)
		}
	}
}

// Without loss a flow sends one window per round trip, or as much as the link's rate allows.
func TestThroughputIsWindowOverRoundTrip(t *testing.T) {
	objects := [][]byte{text(1, 999*100)} // 1000 packets, including the end packet
	for _, window := range []int{1, 7, 100, 999, 1000, 1001} {
		cfg := rdt.Config{Payload: 100, Window: window, Push: true}
		w, _ := transfer(t, cfg, objects, 1, wire{delay: 20 * ms}, wire{delay: 20 * ms})
		rounds := (1000 + window - 1) / window
		assert.Equal(t, time.Duration(rounds)*40*ms, w.now.Sub(start), "window %d", window)
	}
	cfg := rdt.Config{Payload: 100, Window: 1000, Push: true, Checksum: rdt.CRC32C}
	w, _ := transfer(t, cfg, objects, 1,
		wire{delay: 20 * ms, perByte: time.Microsecond}, wire{delay: 20 * ms})
	bytes := 999*100 + 1000*24
	assert.Equal(t, time.Duration(bytes)*time.Microsecond+40*ms, w.now.Sub(start))
}

// The document's 20 objects, alternately large and small, are sent without loss. Sent one after the
// other, the small objects take .55 of the total time on average, and the last one takes all of it.
// Interleaved, all small objects are complete after .02 of it. The total time is the same.
func TestInterleavedObjectsDoNotWaitForLongOnes(t *testing.T) {
	var objects [][]byte
	for i := range uint64(10) {
		objects = append(objects, text(i, 999_651), text(100+i, 9_998))
	}
	line := wire{delay: ms, perByte: 80 * time.Nanosecond} // the link has 100 Mbit/s
	took := map[bool]float64{}
	for _, interleave := range []bool{false, true} {
		cfg := rdt.Config{Interleave: interleave, Push: true, Checksum: rdt.CRC32C}
		_, list := transfer(t, cfg, objects, 1, line, wire{delay: ms})
		total := list[len(list)-1].At.Sub(start).Seconds()
		took[interleave] = total
		var mean, last float64
		for _, c := range list {
			if c.Stream%2 == 1 {
				at := c.At.Sub(start).Seconds() / total
				mean += at / 10
				last = max(last, at)
			}
		}
		if interleave {
			assert.InDelta(t, .02, last, .005)
		} else {
			assert.InDelta(t, .55, mean, .01)
			assert.InDelta(t, 1, last, 1e-9)
		}
	}
	assert.InEpsilon(t, took[false], took[true], .02)
}

// Without InOrder, a gap in one object delays no other object. With InOrder, every object waits for
// the lost packet: head-of-line blocking.
func TestGapDelaysOnlyItsObject(t *testing.T) {
	var objects [][]byte
	for i := range uint64(5) {
		objects = append(objects, text(i, 5_000))
	}
	for _, inOrder := range []bool{false, true} {
		cfg := rdt.Config{Interleave: true, InOrder: inOrder, Push: true, Duplicates: 1000}
		there := wire{delay: ms}
		// drops the first chunk of object 0
		there.drop = func(n int, _ []byte) bool { return n == 1 }
		_, list := transfer(t, cfg, objects, 1, there, wire{delay: ms})
		for _, c := range list {
			late := c.Stream == 0 || inOrder
			want := ms
			if late {
				want += time.Second
			}
			assert.Equal(t, want, c.At.Sub(start), "object %d, in order %t", c.Stream, inOrder)
		}
	}
}

// The third duplicate acknowledgment retransmits the first packet of the window. So does each third
// one after it, because the count restarts. With Selective, a packet is retransmitted once, when a
// packet that was sent three later has arrived (RFC 9002 §6.1.1).
func TestThirdDuplicateRetransmits(t *testing.T) {
	for _, c := range []struct {
		window    int
		selective bool
		fast      uint64
	}{
		{4, false, 1}, // three packets arrive after the gap
		{3, false, 0}, // two packets arrive, so the timeout must expire
		{20, false, 6},
		{20, true, 1},
		{4, true, 1},
		{3, true, 0},
	} {
		cfg := rdt.Config{Payload: 100, Window: c.window, Selective: c.selective, Push: true}
		there := wire{delay: 100 * ms, perByte: time.Microsecond}
		there.drop = func(n int, _ []byte) bool { return n == 1 }
		s, r := pair(t, cfg, [][]byte{text(1, 19*100)})
		w := newWorld(t, s, r, 1, there, wire{delay: 100 * ms})
		w.run(func() bool { return s.Done() })
		info := s.Info()
		assert.Equal(t, c.fast, info.FastResent, "%+v", c)
		assert.Equal(t, c.fast == 0, info.TimedOut > 0, "%+v", c)
	}
}

// The adaptive timeout follows the round-trip time. With loss, it makes stop-and-wait faster.
func TestAdaptiveTimeout(t *testing.T) {
	objects := [][]byte{text(1, 500*100)}
	took := map[bool]time.Duration{}
	for _, adaptive := range []bool{false, true} {
		cfg := rdt.Config{Payload: 100, Window: 1, Push: true, Adaptive: adaptive}
		s, r := pair(t, cfg, objects)
		w := newWorld(t, s, r, 3, wire{loss: .1, delay: 20 * ms}, wire{delay: 20 * ms})
		w.run(func() bool { return s.Done() })
		require.NoError(t, s.Err())
		took[adaptive] = w.now.Sub(start)
		if adaptive {
			assert.Equal(t, 40*ms, s.Info().SRTT)
			assert.InDelta(t, 40*ms, s.Info().Timeout, float64(ms))
		} else {
			assert.Equal(t, time.Second, s.Info().Timeout)
		}
	}
	assert.Less(t, took[true], took[false]/2)
}
