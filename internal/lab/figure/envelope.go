package figure

import (
	"math"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
)

// envelopeColumns is the number of columns of an envelope: each is two points wide in half a page.
const envelopeColumns = 110

// envelope reduces a step function to columns of equal width: band has the maximum and minimum of
// each column, and mean has the mean over the column's time. Columns without a value are gaps.
func envelope(points []chart.Point, from, to float64, columns int) (band, mean []chart.Point) {
	width := (to - from) / float64(columns)
	if !(width > 0) {
		return points, points
	}
	i := 0
	for column := range columns {
		start := from + float64(column)*width
		end := start + width
		high, low, sum, span := math.Inf(-1), math.Inf(1), 0.0, 0.0
		for i+1 < len(points) && points[i+1].X < start {
			i++
		}
		for j := i; j < len(points) && points[j].X < end; j++ {
			until := end
			if j+1 < len(points) {
				until = min(end, points[j+1].X)
			}
			y, held := points[j].Y, until-max(start, points[j].X)
			if infinite(y) || held < 0 {
				continue
			}
			high, low = max(high, y), min(low, y)
			sum, span = sum+y*held, span+held
		}
		p := chart.Point{X: start, Y: high, Low: low}
		m := chart.Point{X: start, Y: sum / span}
		if span <= 0 {
			p.Y, p.Low, m.Y = math.NaN(), math.NaN(), math.NaN()
		}
		band, mean = append(band, p), append(mean, m)
	}
	return lasting(band, to), lasting(mean, to)
}

// enveloped replaces the curve of a window by a band and its mean, and other curves by their means.
func enveloped(layers []chart.Layer, x chart.Axis, window string) []chart.Layer {
	var bands, lines []chart.Layer
	for _, l := range layers {
		band, mean := envelope(l.Points, x.Min, x.Max, envelopeColumns)
		l.Points = mean
		if l.Name == window {
			bands = append(bands, chart.Layer{
				Name: window + ", range", Kind: chart.Blocks, Paint: l.Paint, Opacity: 0.25,
				Points: band,
			})
			l.Width = 1.3
		}
		l.Name += ", mean"
		lines = append(lines, l)
	}
	return append(bands, lines...)
}
