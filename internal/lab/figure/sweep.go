package figure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// sweepMetrics lists the default metrics of figures of a sweep, the most important first.
var sweepMetrics = []result.Metric{
	result.Completion, result.Goodput, result.Utilization, result.Sent, result.RTTMean,
	result.QueueP95, result.Retransmits, result.Jain, result.CwndMean, result.QueueDrops,
}

// maxMetrics limits the number of metrics in figures.
const maxMetrics = 6

// SweepPlots returns the figures of an experiment's cells: metrics over a swept number, the spread
// of the runs of each cell, and delay against throughput. If no metrics are given, the figures show
// the most important ones.
func SweepPlots(cells []Cell, metrics []result.Metric) []Plot {
	c := newCompared(cells, metrics)
	var plots []Plot
	for _, draw := range []func(*compared) (Plot, bool){curvePlot, boxPlot, scatterPlot} {
		if p, ok := draw(c); ok {
			p.chart.Alt = p.heading() + ". " + p.Caption
			plots = append(plots, p)
		}
	}
	return plots
}

// compared has an experiment's cells and the data that all their figures need.
type compared struct {
	cells   []Cell
	groups  []result.Group
	keys    []string // swept keys
	metrics []result.Metric
	asked   []result.Metric
	// axis is the swept key with the most numeric values, at least three; empty if there is no such
	// key. x contains the value of each cell.
	axis string
	x    quantities
	// facet is the key with a panel for each of its values; empty: there is no such key.
	facet string
}

func newCompared(cells []Cell, metrics []result.Metric) *compared {
	c := &compared{cells: cells, keys: swept(cells)}
	for i := range cells {
		c.groups = append(c.groups, result.Groups(i, cells[i].Trials)...)
	}
	most := 2
	for _, key := range c.keys {
		var texts []string
		for i := range cells {
			texts = append(texts, cells[i].value(key))
		}
		q, ok := measure(texts)
		if n := len(distinct(q.values)); ok && n > most {
			c.axis, c.x, most = key, q, n
		}
	}
	if c.axis != "" {
		c.facet = c.chooseFacet()
	}
	c.metrics, c.asked = metrics, metrics
	if len(metrics) == 0 {
		c.metrics = c.choose()
	}
	return c
}

// maxFacets limits the panels side by side.
const maxFacets = 4

// chooseFacet picks the key that divides the curves into panels if two or more keys are swept
// besides the axis. It takes the key with the fewest values, at most maxFacets, whose values do not
// name the flows.
func (c *compared) chooseFacet() string {
	best, least := "", maxFacets+1
	others := 0
	for _, key := range c.keys {
		if key == c.axis {
			continue
		}
		others++
		values := c.valuesOf(key)
		if !c.names(values) && len(values) < least {
			best, least = key, len(values)
		}
	}
	if others < 2 {
		return ""
	}
	return best
}

func (c *compared) valuesOf(key string) []string {
	var values []string
	for i := range c.cells {
		if v := c.cells[i].value(key); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

func (c *compared) names(values []string) bool {
	return slices.ContainsFunc(c.groups, func(g result.Group) bool {
		return g.Label != "" && slices.Contains(values, g.Label)
	})
}

func distinct(values []float64) []float64 {
	list := slices.Clone(values)
	slices.Sort(list)
	return slices.Compact(list)
}

// choose picks the metrics that all cells have and that differ between runs.
func (c *compared) choose() []result.Metric {
	var list []result.Metric
	for _, m := range sweepMetrics {
		cells := map[int]bool{}
		low, high := math.Inf(1), math.Inf(-1)
		for _, g := range c.groups {
			for _, v := range g.Numbers[m].Values {
				cells[g.Cell] = true
				low, high = min(low, v), max(high, v)
			}
		}
		if len(cells) == len(c.cells) && high-low > 0.001*math.Abs(high) &&
			len(list) < maxMetrics {
			list = append(list, m)
		}
	}
	return list
}

// series is one curve: the groups of one kind along the axis.
type series struct {
	name   string
	paint  chart.Paint
	real   bool
	groups []result.Group
}

// series returns the curves of a metric, from the cells with this value of the facet.
func (c *compared) series(m result.Metric, facet string) []series {
	var list []series
	var labels []string
	at := map[string]int{}
	for _, g := range c.groups {
		if _, ok := g.Numbers[m]; !ok {
			continue
		}
		cell := &c.cells[g.Cell]
		if c.facet != "" && cell.value(c.facet) != facet {
			continue
		}
		name := cell.name(c.keys, c.axis, c.facet)
		bare := name == "" || name == "real"
		if flows := len(cell.Trials[0].Flows); g.Flow != "" && (flows > 1 || bare) {
			name = joined(g.Flow, name)
		}
		i, ok := at[name]
		if !ok {
			i = len(list)
			at[name] = i
			list = append(list, series{name: name, real: cell.Real})
			label := g.Label
			if label == "" && len(cell.Trials[0].Flows) == 1 {
				label = cell.Trials[0].Flows[0].Label
			}
			label = cmp.Or(label, name)
			labels = append(labels, label)
		}
		list[i].groups = append(list[i].groups, g)
	}
	if called := allDistinct(labels); called && differByOnOff(list) {
		for i := range list {
			list[i].name = labels[i]
		}
	}
	return paint(list, labels)
}

func allDistinct(labels []string) bool {
	for i, l := range labels {
		if l == "" || slices.Contains(labels[:i], l) {
			return false
		}
	}
	return true
}

// differByOnOff reports whether the curves differ by one key with the values on and off.
func differByOnOff(list []series) bool {
	for _, s := range list {
		_, value, _ := strings.Cut(s.name, " ")
		if s.real || !slices.Contains(keyedValues, value) {
			return false
		}
	}
	return true
}

// paint sets the colors of series. Runs in real time get a darker shade than those in virtual time.
func paint(list []series, labels []string) []series {
	var virtual []string
	for i, s := range list {
		if !s.real {
			virtual = append(virtual, labels[i])
		}
	}
	paints := shades(virtual)
	at := map[string]chart.Paint{}
	for i := range list {
		if !list[i].real {
			list[i].paint, paints = paints[0], paints[1:]
			at[list[i].name] = list[i].paint
		}
	}
	for i := range list {
		if !list[i].real {
			continue
		}
		p, ok := at[strings.TrimSuffix(strings.TrimSuffix(list[i].name, "real"), ", ")]
		if !ok {
			p = PaintOf(labels[i])
		}
		list[i].paint = p.Tint(-0.4)
	}
	return list
}

func joined(a, b string) string {
	if a == "" || b == "" || a == b {
		return cmp.Or(a, b)
	}
	return a + ", " + b
}

// curvePlot shows each metric over the swept number.
func curvePlot(c *compared) (Plot, bool) {
	if c.axis == "" || len(c.metrics) == 0 {
		return Plot{}, false
	}
	p := Plot{
		Name: "sweep", Title: "Effect of " + c.axis,
		Finding: c.sweepFinding(),
	}
	var extras legendExtras
	if c.facet == "" {
		var panels []chart.Panel
		for _, m := range c.metrics {
			panels = append(panels, c.curvePanel(m, "", len(panels) == 0, &extras))
		}
		p.chart = inPairs(panels, 105)
	} else {
		for i, m := range c.metrics {
			row := chart.Row{Height: 95, Panels: c.facetRow(m, i == 0, &extras)}
			for j := range row.Panels {
				row.Panels[j].X.Bare = i < len(c.metrics)-1
			}
			p.chart.Rows = append(p.chart.Rows, row)
		}
	}
	p.Caption = "The mean of each cell's trials (" + c.runs() + ") with its 95 % confidence " +
		"interval, and each trial as a faint dot."
	if c.cutOff() {
		p.Caption = "The mean of each cell (" + c.runs() + ") with its 95 % confidence interval " +
			"(where " +
			"some did not finish: the median and the quartiles), and each trial as a faint dot."
	} else if !slices.ContainsFunc(c.cells, func(c Cell) bool { return len(c.Trials) > 1 }) {
		p.Caption = "The result of the single run of each cell."
	}
	p.Caption += extras.text()
	return p, true
}

func (c *compared) cutOff() bool {
	return slices.ContainsFunc(c.groups, func(g result.Group) bool {
		return g.Numbers[result.Completion].Cut > 0
	})
}

// facetRow returns a metric's panels side by side, with the same scale.
func (c *compared) facetRow(m result.Metric, named bool, extras *legendExtras) []chart.Panel {
	var row []chart.Panel
	low, high := math.Inf(1), math.Inf(-1)
	log := true
	for i, v := range c.valuesOf(c.facet) {
		p := c.curvePanel(m, v, named && i == 0, extras)
		if named {
			p.Title = c.facet + " " + result.Shown(v)
		}
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
		log = log && p.Y.Log
		row = append(row, p)
	}
	for i := range row {
		row[i].Y.Min, row[i].Y.Max, row[i].Y.Log = low, high, log
		row[i].Y.Bare = i > 0
	}
	return row
}

func inPairs(panels []chart.Panel, height float64) chart.Figure {
	var f chart.Figure
	for i := 0; i < len(panels); i += 2 {
		f.Rows = append(f.Rows, chart.Row{
			Height: height, Panels: panels[i:min(i+2, len(panels))],
		})
	}
	return f
}

// legendExtras records which layers besides the runs a figure's legend has named.
type legendExtras struct{ band, theory, published bool }

func (b legendExtras) text() (text string) {
	if b.theory {
		text += " Dashed: theory."
	}
	if b.published {
		text += " Crosses: published values."
	}
	return text
}

func (b *legendExtras) name(layers []chart.Layer) {
	for i := range layers {
		l := &layers[i]
		switch n := len(l.Points) > 0 && !infinite(l.Points[0].X); {
		case n && l.Paint == chart.Ink && l.Dash && !b.theory:
			b.theory, l.Name = true, "theory"
		case n && l.Kind == chart.Crosses && !b.published:
			b.published, l.Name = true, "published"
		}
	}
}

// curvePanel shows a metric over the swept number. If named is set, its legend names the curves.
func (c *compared) curvePanel(
	m result.Metric, facet string, named bool, extras *legendExtras,
) chart.Panel {
	list := c.series(m, facet)
	list = list[:min(len(list), maxCurves)]
	d := m.Definition()
	p := chart.Panel{
		X: chart.Axis{
			Label: joined(c.axis, c.x.unit), Log: geometric(c.x.values),
		},
	}
	p.X.Min, p.X.Max = ends(c.x.values, p.X.Log)
	p.X.At = distinct(c.x.values)
	// All panels of the metric have the same unit and range.
	low, high, least := math.Inf(1), math.Inf(-1), math.Inf(1)
	for _, g := range c.groups {
		if _, ok := g.Numbers[m]; !ok {
			continue
		}
		for _, v := range c.extent(g, m) {
			low, high = min(low, v), max(high, v)
		}
		for _, v := range g.Numbers[m].Values {
			least = min(least, v)
		}
	}
	u := axisScale(d.Unit, high)
	log := low > 0 && high/low >= 50
	if log && d.Unit == "packets" {
		u = result.Scale{Name: string(d.Unit), Size: 1} // a log axis would show 0.1 thousand
	}
	p.Y = chart.Axis{Label: labelled(m, u), Log: log, Per: u.Size}
	p.Y.Min, p.Y.Max = ends([]float64{low, high}, p.Y.Log)
	if !p.Y.Log && least >= 0 && low < 0.6*high {
		p.Y.Min = 0
	}
	for _, s := range list {
		name := ""
		if named {
			name = s.name
		}
		p.Layers = append(p.Layers, c.curve(s, m, name)...)
	}
	extras.name(p.Layers)
	for i := range p.Layers {
		l := &p.Layers[i]
		if len(l.Points) > 0 && l.Kind == chart.Fill && named && !extras.band {
			extras.band, l.Name = true, c.bandName()
		}
	}
	return p
}

func ends(values []float64, log bool) (low, high float64) {
	low, high = slices.Min(values), slices.Max(values)
	if log {
		air := math.Pow(high/low, 0.04)
		return low / air, high * air
	}
	air := 0.05 * (high - low)
	return low - air, high + air
}

func (c *compared) extent(g result.Group, m result.Metric) []float64 {
	t := g.Numbers[m]
	list := slices.Clone(t.Values)
	if low, _, high, ok := middleOf(t); ok {
		list = append(list, low, high)
	}
	theory, published := c.references(g, m)
	list = append(list, theory, published)
	return slices.DeleteFunc(list, func(v float64) bool {
		return math.IsNaN(v) || math.IsInf(v, 0)
	})
}

// middleOf returns the center of a group and its spread: the mean and its confidence interval. If
// some runs were cut off, it returns the median and the quartiles instead.
func middleOf(t result.Number) (low, mid, high float64, ok bool) {
	low, mid, high = t.Low, t.Mean, t.High
	if t.Cut > 0 {
		low, mid, high = t.Q1, t.Median, t.Q3
	}
	if math.IsNaN(mid) || math.IsInf(mid, 0) {
		return 0, 0, 0, false
	}
	if math.IsNaN(low) || math.IsNaN(high) || math.IsInf(high, 0) {
		low, high = mid, mid
	}
	return low, mid, high, true
}

// curve draws one series of a metric: band, trials, mean, and theoretical and published values.
func (c *compared) curve(s series, m result.Metric, name string) []chart.Layer {
	var mean, band, dots, theory, published []chart.Point
	for _, g := range s.groups {
		x := c.x.values[g.Cell]
		t := g.Numbers[m]
		if low, mid, high, ok := middleOf(t); ok {
			mean = append(mean, chart.Point{X: x, Y: mid})
			band = append(band, chart.Point{X: x, Y: high, Low: low})
		}
		for _, v := range t.Values {
			dots = append(dots, chart.Point{X: x, Y: v})
		}
		formula, paper := c.references(g, m)
		if !infinite(formula) {
			theory = append(theory, chart.Point{X: x, Y: formula})
		}
		if !infinite(paper) {
			published = append(published, chart.Point{X: x, Y: paper})
		}
	}
	for _, list := range [][]chart.Point{mean, band, dots, theory, published} {
		slices.SortStableFunc(list, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	}
	line := chart.Layer{
		Name: name, Kind: chart.Line, Paint: s.paint, Width: 1.1, Dash: s.real, Points: mean,
	}
	return []chart.Layer{
		{Kind: chart.Fill, Paint: s.paint, Opacity: 0.2, Points: band},
		{Kind: chart.Dots, Paint: s.paint.Tint(0.5), Width: 1.7, Points: dots},
		line,
		{Kind: chart.Dots, Paint: s.paint, Width: 3, Points: mean},
		{Kind: chart.Line, Paint: chart.Ink, Width: 0.8, Dash: true, MinLength: 12, Points: theory},
		{Kind: chart.Crosses, Paint: s.paint.Tint(-0.35), Width: 0.9, Points: published},
	}
}
