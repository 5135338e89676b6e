package rdt_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/rdt"
)

// The sizes of overlapping chunks may add up to the size of the object and still leave a gap of
// many pages. That corrupts only the sender's own object.
func TestOverlapsLeaveGaps(t *testing.T) {
	cfg := rdt.Config{Payload: 1000, Window: 1000}
	r, err := rdt.NewReceiver(start, cfg, 1)
	require.NoError(t, err)
	const size = 100_000
	seq := uint32(0)
	put := func(offset uint32) {
		p := rdt.Raw{Stream: 1, Sequence: seq, Offset: offset, Payload: make([]byte, 1000)}
		r.Input(start, p.Data(cfg))
		seq++
	}
	put(size - 1000)
	for range size/1000 - 1 {
		put(0)
	}
	r.Input(start, rdt.Raw{Stream: 1, Sequence: seq, Offset: size, State: rdt.StateEnd}.Data(cfg))
	list := completions(r)
	require.Len(t, list, 1)
	require.NoError(t, list[0].Err)
	assert.Len(t, list[0].Data, size)
	assert.Zero(t, r.Info().Held)
}
