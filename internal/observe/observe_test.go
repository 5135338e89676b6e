package observe

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// TestObserverAllocatesNothing checks that copying a segment for an observer needs no allocation
// once the observer's batches have grown.
func TestObserverAllocatesNothing(t *testing.T) {
	o := &Observer{Snaplen: 96}
	o.Begin(time.Time{}, 1, &Backlog{})
	packet := make([]byte, 1400)
	pieces := [][]byte{packet[:40], packet[40:]}
	var p Batch
	turn := func() {
		for range 64 {
			o.Put(&Packet{Length: len(packet)}, packet[:120], pieces)
		}
		o.Flush()
		p = o.take(p)
	}
	for range 4 {
		turn()
	}
	assert.Len(t, p.List, 64)
	assert.Len(t, p.data, 96*64)
	assert.Zero(t, testing.AllocsPerRun(100, turn))
}

func TestRecorderAllocatesNothing(t *testing.T) {
	r := NewRecorder(4)
	header := make([]byte, 200)
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Put(&Packet{Length: 200}, header) }))
	for i := range 6 {
		r.Put(&Packet{Length: i}, header[:i])
	}
	p := r.Batch()
	require.Len(t, p.List, 4)
	for i := range p.List {
		s := &p.List[i]
		assert.Equal(t, i+2, s.Length, "the last of them, in order")
		assert.Len(t, p.Bytes(s), min(i+2, capture.HeaderBytes))
	}
}

// feeder shows numbered packets to observers.
type feeder struct {
	at     clock.Time
	packet []byte
}

func (s *feeder) show(packets int, to ...*Observer) {
	for range packets {
		s.at++
		binary.BigEndian.PutUint32(s.packet, uint32(s.at))
		for _, o := range to {
			o.Put(&Packet{At: s.at, Length: len(s.packet)}, s.packet[:40],
				[][]byte{s.packet[:40], s.packet[40:]})
		}
	}
	for _, o := range to {
		o.Flush()
	}
}

// TestObserverThatFallsBehind checks that a slow observer loses the oldest packets, and that its
// next packet has the number of packets missing before it.
func TestObserverThatFallsBehind(t *testing.T) {
	var b Backlog
	var o Observer
	o.Begin(time.Time{}, 1, &b)
	s := feeder{packet: make([]byte, 4000)}
	for range 300 {
		s.show(100, &o)
	}
	require.LessOrEqual(t, b.held, BacklogBytes)
	next, gap := uint64(1), uint64(0)
	take := func() {
		for p := o.take(Batch{}); len(p.List) > 0; p = o.take(p) {
			for i := range p.List {
				gap += p.List[i].Missed
				next += p.List[i].Missed
				require.Equal(t, uint32(next), binary.BigEndian.Uint32(p.Bytes(&p.List[i])))
				next++
			}
		}
	}
	take()
	s.show(1, &o)
	take()
	assert.Equal(t, uint64(s.at)+1, next, "missing and received packets add up")
	faces, missed := o.Counts()
	assert.Equal(t, missed, gap)
	assert.Equal(t, Count{Packets: uint64(s.at), Missed: missed}, faces[0])
	assert.Greater(t, missed, uint64(10_000))
	assert.LessOrEqual(t, len(o.queue.spare), keptBatches)
	assert.Equal(t, o.queue.held, b.held)
}

// TestManyObserversShareOneBacklog checks that sixteen stalled observers hold no more memory than
// one, and that an observer that reads loses nothing. The memory must be freed when the observers
// leave.
func TestManyObserversShareOneBacklog(t *testing.T) {
	var b Backlog
	var reads Observer
	reads.Begin(time.Time{}, 1, &b)
	silent := make([]*Observer, 16)
	for i := range silent {
		silent[i] = &Observer{}
		silent[i].Begin(time.Time{}, 1, &b)
	}
	s := feeder{packet: make([]byte, 1400)}
	all := append([]*Observer{&reads}, silent...)
	var p Batch
	for range 2000 {
		s.show(64, all...)
		require.LessOrEqual(t, b.held, 64<<20, "of all together")
		for len(p.List) > 0 || !reads.queue.empty() {
			p = reads.take(p)
		}
	}
	_, missed := reads.Counts()
	assert.Zero(t, missed)
	waits := 0
	for _, o := range silent {
		_, missed := o.Counts()
		assert.Positive(t, missed)
		assert.True(t, o.stalled.Load(), "nothing is copied for it any more")
		for i := range o.queue.waiting {
			waits += len(o.queue.waiting[i].List)
		}
		faces, _ := o.Counts()
		assert.Equal(t, uint64(s.at), faces[0].Packets)
		o.Leave()
	}
	assert.Positive(t, waits)
	assert.Equal(t, reads.queue.held, b.held)
	assert.Less(t, b.held, 4<<20)
	silent[0].Flush()
	assert.Equal(t, reads.queue.held, b.held, "an observer that left gets nothing")
}

// TestReportedState checks that the reported state follows the connection, even after small
// changes.
func TestReportedState(t *testing.T) {
	var comments CommentCache
	one := Packet{Known: true, SID: 3}
	one.TraceInfo.MSS, one.TraceInfo.Cwnd = 1000, 10_000
	packets := []Packet{{}, one, one, one, one, one, {}}
	packets[2].TraceInfo.Pipe = 5000
	packets[3].TraceInfo.Cwnd = 20_000
	packets[4].SID = 4
	packets[5].TraceInfo.RTT = time.Millisecond
	for i := range packets {
		assert.Equal(t, packets[i].State(), comments.State(&packets[i]), i)
	}
}
