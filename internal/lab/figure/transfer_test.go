package figure

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts returns the words of an SVG. The SVG must be well-formed.
func texts(t *testing.T, svg []byte) []string {
	t.Helper()
	var found []string
	in := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok {
			found = append(found, string(bytes.TrimSpace(text)))
		}
	}
}

func writePlot(f interface{ Plot() (*Plot, error) }, w io.Writer, format string, s Style) error {
	p, err := f.Plot()
	if err != nil {
		return err
	}
	return p.Write(w, format, s)
}

func TestTransferFigureHasItsTexts(t *testing.T) {
	f := Figure{Title: "C to A", Note: "2 % < 3 %", Samples: sawtooth(30e6, 0.02)}
	require.Positive(t, f.Samples[len(f.Samples)-1].Timeouts, "the fixture must have timeouts")
	var svg bytes.Buffer
	require.NoError(t, writePlot(f, &svg, "svg", Style{}))
	words := texts(t, svg.Bytes())
	for _, want := range []string{
		"C to A", "2 % < 3 %", "window", "round-trip time", "sequence", "cwnd, range",
		"unacked, mean", "ssthresh, mean", "smoothed", "minimum", "acknowledged", "sent", "RTO",
		"window, kB", "RTT, µs", "sequence, MB", "time, s", "time, ms",
	} {
		assert.Contains(t, words, want)
	}
	assert.NotContains(t, words, "TLP", "no tail loss probe occurred")
	assert.Less(t, svg.Len(), 1<<20, "22,000 samples are thinned")
}

func TestLegendOmitsEventsThatDidNotOccur(t *testing.T) {
	var svg bytes.Buffer
	require.NoError(t, writePlot(Figure{Samples: sawtooth(1e6, 0)}, &svg, "svg", Style{}))
	words := texts(t, svg.Bytes())
	assert.NotContains(t, words, "RTO")
	assert.NotContains(t, words, "retransmitted")
	assert.NotContains(t, words, "ssthresh", "not set before the first loss")
}

func TestPNGHasTheFiguresSize(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writePlot(Figure{Title: "t", Samples: sawtooth(1e6, 0.02)}, &b, "png", Style{}))
	picture, err := png.Decode(&b)
	require.NoError(t, err)
	assert.Equal(t, 1400, picture.Bounds().Dx())
	assert.Greater(t, picture.Bounds().Dy(), 1000)
}

func TestTransferFigureOfFewSamples(t *testing.T) {
	require.ErrorIs(t, writePlot(Figure{}, io.Discard, "png", Style{}), ErrNoSamples)
	require.ErrorIs(t, writePlot(Figure{}, io.Discard, "svg", Style{}), ErrNoSamples)
	all := sawtooth(1e6, 0.02)
	for _, n := range []int{1, 2, 3, 50} {
		require.NoError(t, writePlot(Figure{Samples: all[:n]}, io.Discard, "svg", Style{}), "%d samples", n)
	}
	still := []Sample{{Seconds: 4}, {Seconds: 4}}
	require.NoError(t, writePlot(Figure{Samples: still}, io.Discard, "png", Style{}))
}

func TestMiddle(t *testing.T) {
	all := sawtooth(30e6, 0.02)
	part := middle(all)
	first, last := all[0].Seconds, all[len(all)-1].Seconds
	assert.Less(t, len(part), len(all)/4)
	assert.GreaterOrEqual(t, len(part), detailSamples)
	assert.Less(t, part[0].Seconds, (first+last)/2)
	assert.Greater(t, part[len(part)-1].Seconds, (first+last)/2)
	assert.Equal(t, all[:10], middle(all[:10]), "ten samples are too few for a part")
}

func TestOutstandingIsTheMaximumUntilTheNextSample(t *testing.T) {
	samples := []Sample{
		{Acked: 100, Sent: 100, InFlight: 0}, // after this sample, 300 bytes were sent
		{Acked: 200, Sent: 400, InFlight: 200},
		{Acked: 400, Sent: 400, InFlight: 7},
	}
	got := outstanding(samples)
	assert.InDelta(t, 300, got[0].InFlight, 0)
	assert.InDelta(t, 200, got[1].InFlight, 0)
	assert.InDelta(t, 7, got[2].InFlight, 0, "there is no next sample")
	assert.Zero(t, samples[0].InFlight, "the caller's samples do not change")
}
