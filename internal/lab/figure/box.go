package figure

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// These limit a box plot: fewer runs have no meaningful quartiles, and more rows would be
// illegible.
const (
	minRuns  = 3
	maxBoxes = 24
	logRatio = 20 // ratio of values from which the axis is logarithmic
)

// boxPlot shows the spread of the runs, with a row for each cell or flow. It skips numeric
// settings, because those are drawn as curves.
func boxPlot(c *compared) (Plot, bool) {
	if c.axis != "" {
		return Plot{}, false
	}
	p := Plot{Name: "spread", Title: "Spread of the runs"}
	single := !slices.ContainsFunc(c.cells, func(c Cell) bool {
		return len(c.Trials) >= minRuns
	})
	if single && len(c.cells) < 2 {
		return Plot{}, false
	}
	p.Caption = "Each dot is a run (" + c.runs() + "). The box shows the quartiles and the " +
		"median; the whiskers end at the last run within 1.5 times the interquartile range."
	if single {
		p.Title, p.Caption = "Cells compared", "Each dot is a run."
	}
	var extras legendExtras
	var kinds [][]chart.Panel // groups of panels with the same rows
	for _, m := range c.metrics {
		panel, ok := c.boxPanel(m)
		if !ok {
			continue
		}
		extras.name(panel.Layers)
		i := slices.IndexFunc(kinds, func(k []chart.Panel) bool {
			return slices.Equal(k[0].Y.Names, panel.Y.Names)
		})
		if i < 0 {
			kinds = append(kinds, []chart.Panel{panel})
		} else {
			kinds[i] = append(kinds[i], panel)
		}
	}
	p.Caption += extras.text()
	for i, kind := range kinds {
		if first := kind[0].Layers; i == 0 && !single && first[0].Kind == chart.Shape {
			first[0].Name, first[3].Name = "quartiles, "+c.runs(), "median"
		}
		abreast := 3
		if len(kind) == 4 {
			abreast = 2
		}
		for row := range slices.Chunk(kind, abreast) {
			p.addBoxes(row)
		}
	}
	return p, len(p.chart.Rows) > 0
}

// addBoxes adds a row of panels. Only the first panel has the names of the rows.
func (p *Plot) addBoxes(row []chart.Panel) {
	for i := 1; i < len(row); i++ {
		row[i].Y.Bare = true
	}
	height := max(36, min(260, 15*float64(len(row[0].Y.Names))))
	p.chart.Rows = append(p.chart.Rows, chart.Row{Height: height, Panels: row})
}

func (c *compared) boxPanel(m result.Metric) (chart.Panel, bool) {
	list := c.series(m, "")
	list = list[:min(len(list), maxBoxes)]
	var names []string
	var values, said []float64
	for _, s := range list {
		names = append(names, cmp.Or(s.name, "all"))
		for _, g := range s.groups {
			values = append(values, g.Numbers[m].Values...)
			theory, published := c.references(g, m)
			said = append(said, theory, published)
		}
	}
	if len(values) == 0 || slices.Min(values) == slices.Max(values) {
		return chart.Panel{}, false
	}
	values = append(values, slices.DeleteFunc(said, infinite)...)
	least, greatest := slices.Min(values), slices.Max(values)
	u := axisScale(m.Definition().Unit, greatest)
	p := chart.Panel{
		X: chart.Axis{Label: labelled(m, u), Per: u.Size},
		Y: chart.Axis{Names: names, Reversed: true},
	}
	p.X.Log = least > 0 && greatest/least >= logRatio
	p.X.Min, p.X.Max = ends([]float64{least, greatest}, p.X.Log)
	for i, s := range list {
		for _, g := range s.groups {
			theory, published := c.references(g, m)
			const half = 0.42
			y := float64(i)
			p.Layers = append(append(p.Layers, boxLayers(g.Numbers[m].Values, y, s.paint)...),
				chart.Layer{
					Kind: chart.Line, Paint: chart.Ink, Width: 0.8, Dash: true,
					Points: []chart.Point{{X: theory, Y: y - half}, {X: theory, Y: y + half}},
				},
				chart.Layer{
					Kind: chart.Crosses, Paint: s.paint.Tint(-0.35), Width: 0.9,
					Points: []chart.Point{{X: published, Y: y}},
				})
		}
	}
	return p, true
}

// boxLayers returns the layers of a row: the box, the whiskers, the median and the runs.
func boxLayers(values []float64, row float64, paint chart.Paint) []chart.Layer {
	const half, tip = 0.28, 0.14
	var dots []chart.Point
	for i, v := range values {
		// The golden ratio spreads the dots over the row without a pattern.
		_, part := math.Modf(float64(i+1) * 0.6180339887498949)
		dots = append(dots, chart.Point{X: v, Y: row + 0.4*(part-0.5)})
	}
	runs := chart.Layer{Kind: chart.Dots, Paint: paint, Width: 1.8, Points: dots}
	if len(values) < minRuns {
		runs.Width = 4
		for i := range runs.Points {
			runs.Points[i].Y = row
		}
		return []chart.Layer{runs}
	}
	s := result.Describe(values, 0)
	low, high := s.Median, s.Median
	for _, v := range values {
		if reach := 1.5 * (s.Q3 - s.Q1); v >= s.Q1-reach && v <= s.Q3+reach {
			low, high = min(low, v), max(high, v)
		}
	}
	at := func(x, y float64) chart.Point { return chart.Point{X: x, Y: row + y} }
	gap := chart.Point{X: math.NaN()}
	return []chart.Layer{
		{Kind: chart.Shape, Paint: paint, Width: 0.8, Points: []chart.Point{
			at(s.Q1, -half), at(s.Q3, -half), at(s.Q3, half), at(s.Q1, half),
		}},
		{Kind: chart.Line, Paint: paint, Width: 0.8, Points: []chart.Point{
			at(low, 0), at(s.Q1, 0), gap, at(s.Q3, 0), at(high, 0), gap,
			at(low, -tip), at(low, tip), gap, at(high, -tip), at(high, tip),
		}},
		runs,
		{Kind: chart.Line, Paint: chart.Ink, Width: 1.4, Points: []chart.Point{
			at(s.Median, -half), at(s.Median, half),
		}},
	}
}
