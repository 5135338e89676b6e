package figure

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// scatterPlot shows delay against throughput, with a dot for each run. Better is up and right.
func scatterPlot(c *compared) (Plot, bool) {
	delay := result.RTTP95
	list := c.series(result.Goodput, "")
	var clouds [][][]chart.Point
	var kept []series
	var left, right, top float64 = 0, math.Inf(1), 0
	least := math.Inf(1)
	for _, s := range list {
		var own [][]chart.Point
		for _, g := range c.ordered(s.groups) {
			var cloud []chart.Point
			for _, v := range g.Trials {
				x, y := v[delay], v[result.Goodput]
				if x > 0 && y > 0 && !infinite(x) && !infinite(y) {
					cloud = append(cloud, chart.Point{X: x, Y: y})
					left, right, top = max(left, x), min(right, x), max(top, y)
					least = min(least, y)
				}
			}
			if len(cloud) > 0 {
				own = append(own, cloud)
			}
		}
		if len(own) > 0 {
			kept, clouds = append(kept, s), append(clouds, own)
		}
	}
	if c.facet != "" || len(kept) < 2 || left < 1.05*right {
		return Plot{}, false
	}
	u := result.ScaleOf("s", left)
	log := left/right > 12
	panel := chart.Panel{
		X: chart.Axis{Label: labelled(delay, u), Reversed: true, Log: log, Per: u.Size},
		Y: axis("goodput", result.ScaleOf("bit/s", top), 0, 1.08*top),
	}
	panel.X.Min, panel.X.Max = ends([]float64{right, left}, log)
	if least > 0.5*top { // no value is near zero
		panel.Y.Min, panel.Y.Max = ends([]float64{least, top}, false)
	}
	p := Plot{Name: "tradeoff", Title: "Throughput and delay", Caption: c.tradeoffCaption()}
	named := namedSeries(kept)
	for i, s := range kept {
		layers := cloudLayers(s, clouds[i], log)
		panel.Layers = append(panel.Layers, layers...)
		if !named[i] {
			continue
		}
		means := layers[len(layers)-1].Points
		at := means[len(means)-1]
		panel.Names = append(panel.Names, chart.Name{
			X: at.X, Y: at.Y, Text: s.name, Paint: s.paint,
		})
	}
	p.chart = chart.Figure{Rows: []chart.Row{{Height: 200, Panels: []chart.Panel{panel}}}}
	return p, true
}

func (c *compared) tradeoffCaption() string {
	text := "Each dot is a flow of a run: its goodput, and the 95th percentile of its " +
		"round-trip times (shorter to the right). "
	switch {
	case c.axis != "":
		text += "The large dots are the means of the cells, joined in the order of " +
			c.axis + ". "
	case slices.ContainsFunc(c.cells, func(c Cell) bool { return len(c.Trials) > 1 }):
		text += "The large dots are means; the ellipses show one standard deviation. "
	}
	return text + "Better is up and to the right."
}

// namedSeries returns the series whose names are next to their points. These are all series if
// there are few, or the first and the last of each kind.
func namedSeries(list []series) []bool {
	named := make([]bool, len(list))
	last := map[string]int{}
	for i, s := range list {
		label := s.groups[0].Label
		if _, again := last[label]; !again {
			named[i] = true
		}
		last[label] = i
		named[i] = named[i] || len(list) <= maxCurves
	}
	for _, i := range last {
		named[i] = true
	}
	return named
}

// cloudLayers draws the runs of a series. It adds an ellipse around the runs of a single cell, or a
// line through the means of several cells.
func cloudLayers(s series, clouds [][]chart.Point, log bool) []chart.Layer {
	dots := chart.Layer{Kind: chart.Dots, Paint: s.paint.Tint(0.35), Width: 1.8}
	means := chart.Layer{Kind: chart.Dots, Paint: s.paint, Width: 4.5}
	around := chart.Layer{Kind: chart.Shape, Paint: s.paint, Width: 0.7, Opacity: 0.15}
	for _, cloud := range clouds {
		center, shape := ellipse(cloud, log)
		dots.Points = append(dots.Points, cloud...)
		means.Points = append(means.Points, center)
		around.Points = shape
	}
	if len(clouds) > 1 {
		around = chart.Layer{Kind: chart.Line, Paint: s.paint, Width: 0.9, Points: means.Points}
		means.Width = 3.2
	}
	return []chart.Layer{around, dots, means}
}

func (c *compared) ordered(groups []result.Group) []result.Group {
	if c.axis == "" {
		return groups
	}
	list := slices.Clone(groups)
	slices.SortStableFunc(list, func(a, b result.Group) int {
		return cmp.Compare(c.x.values[a.Cell], c.x.values[b.Cell])
	})
	return list
}

// ellipse returns the mean of some points and the contour of one standard deviation. On a
// logarithmic axis, it uses the logarithm of X. Fewer than three points have no contour.
func ellipse(cloud []chart.Point, log bool) (center chart.Point, around []chart.Point) {
	to, from := func(x float64) float64 { return x }, func(x float64) float64 { return x }
	if log {
		to, from = math.Log, math.Exp
	}
	n := float64(len(cloud))
	var mx, my float64
	for _, p := range cloud {
		mx, my = mx+to(p.X)/n, my+p.Y/n
	}
	center = chart.Point{X: from(mx), Y: my}
	if len(cloud) < 3 {
		return center, nil
	}
	var xx, xy, yy float64
	for _, p := range cloud {
		dx, dy := to(p.X)-mx, p.Y-my
		xx, xy, yy = xx+dx*dx/(n-1), xy+dx*dy/(n-1), yy+dy*dy/(n-1)
	}
	// The Cholesky factor of the covariance maps the circle to the ellipse.
	a := math.Sqrt(xx)
	if a == 0 {
		return center, nil
	}
	b := xy / a
	d := math.Sqrt(max(0, yy-b*b))
	const corners = 72
	for i := range corners {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		around = append(around, chart.Point{X: from(mx + a*cos), Y: my + b*cos + d*sin})
	}
	return center, around
}
