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
		p = o.take(&p)
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
