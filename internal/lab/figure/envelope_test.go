package figure

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

func TestEnvelopeKeepsPeaksAndMeansOverTime(t *testing.T) {
	// The input is a sawtooth of 1,000 teeth from 10 to 20, with one peak of 90 that lasts a
	// hundredth of a tooth.
	var saw []chart.Point
	for tooth := range 1000 {
		x := float64(tooth)
		saw = append(saw, chart.Point{X: x, Y: 10}, chart.Point{X: x + 0.5, Y: 20})
		if tooth == 500 {
			saw = append(saw, chart.Point{X: x + 0.98, Y: 90}, chart.Point{X: x + 0.99, Y: 20})
		}
	}
	band, mean := envelope(saw, 0, 1000, envelopeColumns)
	require.Len(t, band, envelopeColumns+1)
	peaks := 0
	for i := range envelopeColumns {
		assert.InDelta(t, 15, mean[i].Y, 0.8, "column %d", i)
		assert.InDelta(t, 10, band[i].Low, 0)
		if band[i].Y == 90 {
			peaks++
		} else {
			assert.InDelta(t, 20, band[i].Y, 0)
		}
	}
	assert.Equal(t, 1, peaks)

	brief := []chart.Point{{X: 5, Y: 3}, {X: 6, Y: math.NaN()}}
	band, mean = envelope(brief, 0, 10, envelopeColumns)
	assert.True(t, math.IsNaN(band[0].Y), "no value before the first point")
	assert.True(t, math.IsNaN(mean[envelopeColumns].Y))
	assert.InDelta(t, 3, mean[envelopeColumns*11/20].Y, 0)
}

// The window of a transfer with hundreds of losses is drawn as a band with a mean. The detail on
// the right has each change.
func TestWindowOfManyLossesIsAnEnvelope(t *testing.T) {
	f := Figure{Samples: sawtooth(30e6, 0.02)}
	c, err := f.Plot()
	require.NoError(t, err)
	whole, detail := c.chart.Rows[0].Panels[0], c.chart.Rows[0].Panels[1]
	names := func(p chart.Panel) (list []string) {
		for _, l := range p.Layers {
			list = append(list, l.Name)
			assert.LessOrEqual(t, len(l.Points), envelopeColumns+1, l.Name)
		}
		return list
	}
	assert.Equal(t, []string{"cwnd, range", "unacked, mean", "ssthresh, mean", "cwnd, mean"}, names(whole))
	assert.Greater(t, len(detail.Layers[2].Points), detailSamples-1)

	c, err = Figure{Samples: sawtooth(1e6, 0)}.Plot()
	require.NoError(t, err)
	assert.Equal(t, "cwnd", c.chart.Rows[0].Panels[0].Layers[2].Name)
}

func TestEventsHaveOneColor(t *testing.T) {
	c, err := Figure{Samples: sawtooth(30e6, 0.02)}.Plot()
	require.NoError(t, err)
	colors := map[string]chart.Paint{}
	for _, row := range c.chart.Rows {
		for _, p := range row.Panels {
			for _, s := range p.Strips {
				if was, ok := colors[s.Name]; ok {
					assert.Equal(t, was, s.Paint, s.Name)
				}
				colors[s.Name] = s.Paint
			}
		}
	}
	require.Contains(t, colors, "RTO")
	for name, p := range colors {
		for other, q := range colors {
			assert.True(t, name == other || p != q, "%s and %s", name, other)
		}
	}
	var lab bytes.Buffer // figures of the laboratory
	plots := Plots(synthesize(20*time.Second, 3, 30000, "reno"))
	for i := range plots {
		require.NoError(t, plots[i].Write(&lab, "svg", Style{}))
		for _, row := range plots[i].chart.Rows {
			for _, p := range row.Panels {
				for _, s := range p.Strips {
					if want, ok := colors[s.Name]; ok {
						assert.Equal(t, want, s.Paint, "%s in %s", s.Name, plots[i].Name)
					}
				}
			}
		}
	}
}
