//go:build linux

package lead

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A measured rate never exceeds the impaired link's limit. A busy machine only makes it lower.
func TestImpair(t *testing.T) {
	p, err := Build(t.Context(), "../..", t.TempDir())
	require.NoError(t, err)
	list, err := p.Impair(t.Context())
	require.NoError(t, err)
	got := map[string]float64{}
	for _, i := range list {
		t.Logf("impair %s: %s %.4g %s, %s", i.Words, i.What, i.Got, i.Unit, i.Note)
		got[i.Words] = i.Got
	}
	require.Len(t, got, 4)
	assert.GreaterOrEqual(t, got["delay 20ms"], 20.0)
	assert.InDelta(t, 2, got["loss 2%"], 1, "seven standard deviations")
	assert.Positive(t, got["rate 10mbit limit 1000"])
	assert.Less(t, got["rate 10mbit limit 1000"], 10.5)
	assert.GreaterOrEqual(t, got["rate 10mbit codel delay 20ms"], 20.0)
}

// rdt-real runs only in real time, and pantheon-3 has no expectations, so they cannot be checked.
func TestCheckWithoutExpectations(t *testing.T) {
	p, err := Build(t.Context(), "../..", t.TempDir())
	require.NoError(t, err)
	for _, preset := range []string{"rdt-real", "pantheon-3"} {
		_, _, err = p.Check(t.Context(), preset)
		require.ErrorIs(t, err, ErrNothingExpected, preset)
	}
}
