package figure

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTransfersNamesEachAlgorithmAndTheBound(t *testing.T) {
	f := Transfers{
		Title: "C to A", Note: "2 % loss", Bound: 5e6,
		List: []Transfer{
			{"reno", sawtooth(30e6, 0.02)}, {"bbr", sawtooth(30e6, 0)}, {"cubic", nil},
		},
	}
	var svg bytes.Buffer
	require.NoError(t, writePlot(f, &svg, "svg", Style{}))
	words := texts(t, svg.Bytes())
	for _, want := range []string{
		"C to A", "2 % loss", "acknowledged", "throughput", "reno", "bbr", "loss bound",
		"MB/s", "cwnd, kB", "time, s",
	} {
		assert.Contains(t, words, want)
	}
	assert.NotContains(t, words, "cubic", "it has no samples")
	require.NoError(t, writePlot(f, io.Discard, "png", Style{}))
}

func TestTransfersWithoutSamples(t *testing.T) {
	require.ErrorIs(t, writePlot(Transfers{List: []Transfer{{Name: "reno"}}}, io.Discard, "svg", Style{}), ErrNoSamples)
	still := []Sample{{Seconds: 4}, {Seconds: 4}}
	require.NoError(t, writePlot(Transfers{List: []Transfer{{"reno", still}}}, io.Discard, "png", Style{}))
}

// The throughputs of all intervals add up to the acknowledged bytes.
func TestTransferRates(t *testing.T) {
	tr := Transfer{Samples: []Sample{
		{Seconds: 3, Acked: 0}, {Seconds: 4, Acked: 2e6}, {Seconds: 5, Acked: 8e6},
	}}
	list := tr.rates(1)
	require.Len(t, list, 4)
	assert.InDelta(t, 2e6, list[0].Y, 1e-9)
	assert.InDelta(t, 6e6, list[1].Y, 1e-9)
	assert.InDelta(t, 2, list[3].X, 1e-9)
	assert.Zero(t, list[3].Y, "the rate is 0 after the end")
}
