package sight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

// TestWhatAnObserverCosts: a segment that is shown to an observer is copied without an
// allocation once its piles have grown.
func TestWhatAnObserverCosts(t *testing.T) {
	o := &Observer{Snaplen: 96}
	o.Begin(time.Time{}, 1)
	packet := make([]byte, 1400)
	pieces := [][]byte{packet[:40], packet[40:]}
	var p Pile
	turn := func() {
		for range 64 {
			o.Put(&Sight{Length: len(packet)}, packet[:120], pieces)
		}
		o.Settle()
		p = o.take(p)
	}
	for range 4 {
		turn()
	}
	assert.Len(t, p.List, 64)
	assert.Len(t, p.data, 96*64)
	assert.Zero(t, testing.AllocsPerRun(100, turn))
}

func TestARecorderAllocatesNothingASegment(t *testing.T) {
	r := NewFlight(4)
	header := make([]byte, 200)
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Put(&Sight{Length: 200}, header) }))
	for i := range 6 {
		r.Put(&Sight{Length: i}, header[:i])
	}
	p := r.Pile()
	require.Len(t, p.List, 4)
	for i := range p.List {
		s := &p.List[i]
		assert.Equal(t, i+2, s.Length, "the last of them, in order")
		assert.Len(t, p.Bytes(s), min(i+2, capture.HeaderBytes))
	}
}

// TestAnObserverThatFallsBehind: what there is room for waits in its order, short turns together,
// and what there is none for is counted, and told with the next that there is room for.
func TestAnObserverThatFallsBehind(t *testing.T) {
	const size = 4000
	o := &Observer{}
	o.Begin(time.Time{}, 1)
	packet := make([]byte, size)
	number := 0
	show := func(packets int) {
		for range packets {
			packet[0], packet[1], packet[2] = byte(number), byte(number>>8), byte(number>>16)
			number++
			o.Put(&Sight{Length: size}, packet[:40], [][]byte{packet[:40], packet[40:]})
		}
		o.Settle()
	}
	room := MaxPileBytes / size
	for number < room+500 {
		show([]int{1, 3, 200}[number%3])
	}
	missed := uint64(number - room)
	_, counted := o.Counts()
	assert.Equal(t, missed, counted)

	next, piles := 0, 0
	var gap uint64
	take := func() {
		for p := o.take(Pile{}); len(p.List) > 0; p = o.take(p) {
			piles++
			for i := range p.List {
				b := p.Bytes(&p.List[i])
				gap += p.List[i].Missed
				next += int(p.List[i].Missed)
				require.Equal(t, []byte{byte(next), byte(next >> 8), byte(next >> 16)}, b[:3])
				require.Len(t, b, size)
				next++
			}
		}
	}
	take()
	assert.Equal(t, room, next)
	assert.Zero(t, gap)
	assert.Less(t, piles, room/50, "short turns are together")
	show(1)
	take()
	assert.Equal(t, number, next)
	assert.Equal(t, missed, gap)
	faces, _ := o.Counts()
	assert.Equal(t, Count{Packets: uint64(number), Missed: missed}, faces[0])
	assert.LessOrEqual(t, len(o.queue.spare), keptPiles)
	assert.Zero(t, o.queue.packets+o.queue.bytes)
}

// TestSaid: what is said follows the connection, however little of it changes.
func TestSaid(t *testing.T) {
	var said Said
	one := Sight{Known: true, SID: 3}
	one.Glance.MSS, one.Glance.Cwnd = 1000, 10_000
	packets := []Sight{{}, one, one, one, one, one, {}}
	packets[2].Glance.Pipe = 5000
	packets[3].Glance.Cwnd = 20_000
	packets[4].SID = 4
	packets[5].Glance.RTT = time.Millisecond
	for i := range packets {
		assert.Equal(t, packets[i].State(), said.State(&packets[i]), i)
	}
}
