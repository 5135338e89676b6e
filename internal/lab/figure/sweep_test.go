package figure

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func TestSweepOverALogarithmicAxis(t *testing.T) {
	cells := buffers(10)
	plots := SweepPlots(cells, []result.Metric{result.Utilization, result.Goodput})
	assert.Equal(t, []string{"sweep", "tradeoff"}, names(plots))
	p := plotOf(t, plots, "sweep")
	require.Len(t, p.chart.Rows, 1)
	panel := &p.chart.Rows[0].Panels[0]
	assert.True(t, panel.X.Log)
	assert.False(t, panel.Y.Log)
	assert.Equal(t, "limit, bdp", panel.X.Label)
	assert.Equal(t, []float64{0.1, 0.2, 0.5, 1, 2, 4}, panel.X.At)
	assert.Contains(t, p.Caption, "Dashed: theory.")
	found := words(t, p)
	for _, want := range []string{
		"tahoe", "reno", "cubic", "0.1", "4", "utilisation", "limit, bdp", "95 % confidence interval, n = 10",
	} {
		assert.Contains(t, found, want)
	}

	reno := layer(t, panel, "reno")
	assert.Equal(t, chart.Sky, reno.Paint)
	require.Len(t, reno.Points, 6)
	for i, point := range reno.Points {
		var values []float64
		for _, trial := range cells[6+i].Trials {
			values = append(values, trial.Whole[result.Utilization])
		}
		s := result.Describe(values, 0)
		assert.InDelta(t, s.Mean, point.Y, 1e-12)
		band := panel.Layers[6].Points[i] // first layer of the second series
		assert.InDelta(t, s.Low, band.Low, 1e-12)
		assert.InDelta(t, s.High, band.Y, 1e-12)
	}
}

func TestSweepOfTwoNumbersHasAPanelForEachValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var cells []Cell
	for _, loss := range []string{"0.1%", "1%"} {
		for _, rtt := range []string{"10ms", "100ms", "1s"} {
			for _, cc := range []string{"reno", "cubic", "bbr"} {
				c := Cell{Set: []Setting{{"loss", loss}, {"delay", rtt}, {"cc", cc}}}
				for i := range 3 {
					c.Trials = append(c.Trials, drawn(rng, i, 5e6, 0.05, cc))
				}
				cells = append(cells, c)
			}
		}
	}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Goodput, result.RTTMean}), "sweep")
	require.Len(t, p.chart.Rows, 2)
	row := p.chart.Rows[0].Panels
	require.Len(t, row, 2)
	assert.Equal(t, "loss 0.1%", row[0].Title)
	assert.Equal(t, "loss 1%", row[1].Title)
	assert.InDelta(t, row[0].Y.Max, row[1].Y.Max, 0, "the same scale")
	assert.InDelta(t, 0.01, row[0].X.At[0], 1e-12)
	assert.Equal(t, "delay, s", row[0].X.Label)
	assert.Equal(t, chart.Vermillion, layer(t, &row[0], "bbr").Paint)
}

func TestAxisIgnoresMissingValues(t *testing.T) {
	cells := buffers(10)
	for i := range cells {
		for _, trial := range cells[i].Trials {
			trial.Flows[0].Values[result.Completion] = 10 + 0.1*float64(i)
		}
	}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Completion}), "sweep")
	assert.Greater(t, p.chart.Rows[0].Panels[0].Y.Min, 9.0)
}

func TestSweepOfNamesHasBoxes(t *testing.T) {
	plots := SweepPlots(arms(10, false), []result.Metric{result.Goodput})
	assert.Equal(t, []string{"spread", "tradeoff"}, names(plots))
	panel := &plots[0].chart.Rows[0].Panels[0]
	assert.Equal(t, []string{"tahoe", "reno", "newreno", "cubic", "bbr"}, panel.Y.Names)
	assert.Equal(t, "goodput, Mbit/s", panel.X.Label)
	assert.Equal(t, "quartiles, n = 10", panel.Layers[0].Name)
	scatter := &plotOf(t, plots, "tradeoff").chart.Rows[0].Panels[0]
	assert.True(t, scatter.X.Reversed, "up and to the right is better")
}

func TestBoxesShowTheoryAndPublishedValues(t *testing.T) {
	cells := arms(1, false)
	cells[1].Theory = result.Values{result.Goodput: 7e6}
	cells[2].Published = result.Values{result.Goodput: 20e6}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Goodput}), "spread")
	panel := &p.chart.Rows[0].Panels[0]
	at := map[string]chart.Point{}
	for i := range panel.Layers {
		at[panel.Layers[i].Name] = panel.Layers[i].Points[0]
	}
	assert.InDelta(t, 7e6, at["theory"].X, 0)
	assert.InDelta(t, 1, at["theory"].Y, 0.5)
	assert.Equal(t, chart.Point{X: 20e6, Y: 2}, at["published"])
	assert.Greater(t, panel.X.Max, 20e6)
	assert.Contains(t, p.Caption, "Dashed: theory. Crosses: published values.")
}

// A theoretical value of a single cell is drawn as a line of a minimum length, to be visible.
func TestTheoryOfOneCellIsVisible(t *testing.T) {
	var cells []Cell
	for i, loss := range []string{"1%", "2%", "3%"} {
		cells = append(cells, Cell{
			Set: []Setting{{"loss", loss}}, Trials: arms(1, false)[i].Trials,
		})
	}
	cells[1].Theory = result.Values{result.Goodput: 7e6}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Goodput}), "sweep")
	for _, l := range p.chart.Rows[0].Panels[0].Layers {
		if l.Name == "theory" {
			assert.Equal(t, []chart.Point{{X: 2, Y: 7e6}}, l.Points)
			assert.Greater(t, l.MinLength, 4*l.Width)
			return
		}
	}
	require.Fail(t, "no layer for theory")
}

func TestBoxesShowQuartiles(t *testing.T) {
	values := []float64{1, 2, 3, 4, 5, 6, 7, 8, 100}
	layers := boxLayers(values, 2, chart.Blue)
	s := result.Describe(values, 0)
	box := layers[0].Points
	assert.InDelta(t, s.Q1, box[0].X, 1e-12)
	assert.InDelta(t, s.Q3, box[1].X, 1e-12)
	whiskers := layers[1].Points
	assert.InDelta(t, 1, whiskers[0].X, 0)
	assert.InDelta(t, 8, whiskers[4].X, 0, "100 is more than 1.5 interquartile ranges away")
	assert.Len(t, layers[2].Points, len(values), "each run has a dot")
	assert.InDelta(t, 5, layers[3].Points[0].X, 0)
	assert.Len(t, boxLayers(values[:2], 0, chart.Blue), 1, "two runs have no box")
}

func TestEllipseIsOneStandardDeviation(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	var cloud []chart.Point
	for range 20_000 {
		x := rng.NormFloat64()
		cloud = append(cloud, chart.Point{X: 10 + 2*x, Y: 5 + x + rng.NormFloat64()})
	}
	center, around := ellipse(cloud, false)
	assert.InDelta(t, 10, center.X, 0.1)
	assert.InDelta(t, 5, center.Y, 0.1)
	var right, top float64
	for _, p := range around {
		right, top = max(right, p.X), max(top, p.Y)
	}
	assert.InDelta(t, 12, right, 0.1, "one standard deviation")
	assert.InDelta(t, 5+math.Sqrt2, top, 0.1)
	_, none := ellipse(cloud[:2], false)
	assert.Empty(t, none)
	_, none = ellipse([]chart.Point{{X: 1}, {X: 1}, {X: 1}}, true)
	assert.Empty(t, none)
}

func TestUnfinishedRunsHaveMedians(t *testing.T) {
	cells := buffers(9)
	for i := range 3 {
		cut := cells[7].Trials[i]
		cut.Finished, cut.Note = false, "the time limit"
		cut.Flows[0].Finished, cut.Flows[0].Note = false, "the time limit"
		delete(cut.Flows[0].Values, result.Completion)
	}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Completion}), "sweep")
	assert.Contains(t, p.Caption, "where some did not finish: the median")
	c := newCompared(cells, nil)
	for _, g := range c.groups {
		if g.Cell == 7 && g.Flow != "" {
			assert.Equal(t, 3, g.Numbers[result.Completion].Cut)
			assert.Equal(t, 6, g.Finished)
		}
	}
}

func TestColorsOfRealRuns(t *testing.T) {
	list := newCompared(arms(5, true), nil).series(result.Goodput, "")
	require.Len(t, list, 10)
	for i := 0; i < len(list); i += 2 {
		assert.Equal(t, list[i].name+", real", list[i+1].name)
		assert.Equal(t, list[i].paint.Tint(-0.4), list[i+1].paint)
		assert.Equal(t, PaintOf(list[i].name), list[i].paint)
	}
}

func TestSweepPlotsWithoutResults(t *testing.T) {
	assert.Empty(t, SweepPlots(nil, nil))
	assert.Empty(t, SweepPlots([]Cell{{}}, nil))
	one := arms(1, false)[:1]
	assert.Empty(t, SweepPlots(one, nil))
	assert.Empty(t, SweepPlots(one, []result.Metric{"no such"}))
}

func TestMeasure(t *testing.T) {
	for _, c := range []struct {
		texts  []string
		values []float64
		unit   string
	}{
		{[]string{"0.1bdp", "4bdp"}, []float64{0.1, 4}, "bdp"},
		{[]string{"10", "20"}, []float64{10, 20}, ""},
		{[]string{"1%", "2.5 %"}, []float64{1, 2.5}, "%"},
		{[]string{"500kbit", "2Mbit"}, []float64{0.5, 2}, "Mbit/s"},
		{[]string{"2Mbit", "4Mbit/s"}, []float64{2, 4}, "Mbit/s"},
		{[]string{"500kB/s", "2MB/s"}, []float64{4, 16}, "Mbit/s"},
		{[]string{"30s", "2min"}, []float64{30, 120}, "s"},
		{[]string{"0", "20ms", "1s"}, []float64{0, 0.02, 1}, "s"},
		{[]string{"1e3B", "1MB"}, []float64{0.001, 1}, "MB"},
		{[]string{"reno", "cubic"}, nil, ""},
		{[]string{"10ms", "1MB"}, nil, ""},
		{[]string{"every 1000", "2%"}, nil, ""},
		{[]string{"1e999"}, nil, ""},
		{[]string{""}, nil, ""},
	} {
		q, ok := measure(c.texts)
		assert.Equal(t, c.values != nil, ok, "%q", c.texts)
		assert.InDeltaSlice(t, c.values, q.values, 1e-12, "%q", c.texts)
		assert.Equal(t, c.unit, q.unit, "%q", c.texts)
	}
}

func TestQuantity(t *testing.T) {
	for _, c := range []struct {
		text   string
		metric result.Metric
		want   float64
		ok     bool
	}{
		{"211.3 ms", result.RTTMean, 0.2113, true},
		{"3,289", result.Sent, 3289, true},
		{"3289 packets", result.Sent, 3289, true},
		{"96 %", result.Utilization, 0.96, true},
		{"0.96", result.Utilization, 0.96, true},
		{"1.2Mbit/s", result.Goodput, 1.2e6, true},
		{"12", result.RTTMean, 0, false},
		{"12 kB", result.RTTMean, 0, false},
		{"about 600", result.Sent, 0, false},
		{"", result.Sent, 0, false},
	} {
		v, ok := Quantity(c.text, c.metric)
		assert.Equal(t, c.ok, ok, c.text)
		if ok {
			assert.InDelta(t, c.want, v, 1e-9, c.text)
		}
	}
}

func TestTheoryIsDrawnForTheFirstFlow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var cells []Cell
	for _, limit := range []string{"1bdp", "2bdp", "4bdp"} {
		c := Cell{Set: []Setting{{"limit", limit}}, Theory: result.Values{result.Goodput: 4e6}}
		c.Trials = append(c.Trials, drawn(rng, 0, 8e6, 0.05, "reno", "cubic"))
		cells = append(cells, c)
	}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Goodput}), "sweep")
	dashed := 0
	for _, l := range p.chart.Rows[0].Panels[0].Layers {
		if l.Dash && len(l.Points) > 0 {
			dashed++
		}
	}
	assert.Equal(t, 1, dashed)
}

func TestGeometric(t *testing.T) {
	assert.True(t, geometric([]float64{1, 10, 100}))
	assert.True(t, geometric([]float64{4, 0.1, 0.2, 0.5, 1, 2}))
	assert.False(t, geometric([]float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8}))
	assert.False(t, geometric([]float64{0, 10, 100}))
	assert.False(t, geometric([]float64{1, 100}))
}

// Cells are named by values, and also by keys if the values alone are ambiguous.
func TestNamesOfCells(t *testing.T) {
	keys := []string{"loss", "timer", "arm"}
	for want, values := range map[string][]string{
		"loss none, timer off, TCP in turns": {"none", "off", "TCP in turns"},
		"loss 1%, timer on, cubic":           {"1%", "on", "cubic"},
	} {
		var c Cell
		for i, key := range keys {
			c.Set = append(c.Set, Setting{key, values[i]})
		}
		assert.Equal(t, want, c.name(keys))
	}
}

// hostileCells returns cells with random values in all fields.
func hostileCells(rng *rand.Rand) []Cell {
	number := func() float64 {
		list := []float64{0, 1, -1, 1e6, math.NaN(), math.Inf(1), 1e308, -1e308, 5e-324, rng.Float64()}
		return list[rng.IntN(len(list))]
	}
	name := func() string {
		list := []string{"", "a", "<b onload=x>", "\x00\xff", strings.Repeat("long ", 50), "5", "1e308", "3ms"}
		return list[rng.IntN(len(list))]
	}
	values := func() result.Values {
		v := result.Values{}
		for _, d := range result.Catalog() {
			if rng.IntN(3) > 0 {
				v[d.Name] = number()
			}
		}
		return v
	}
	var cells []Cell
	for range rng.IntN(9) {
		c := Cell{Real: rng.IntN(4) == 0, Theory: values(), Published: values()}
		for _, key := range []string{"a.b", "c", "<k>"}[:rng.IntN(4)] {
			c.Set = append(c.Set, Setting{key, name()})
		}
		flows := rng.IntN(4)
		for i := range rng.IntN(6) {
			tr := &result.Trial{Trial: i, Finished: rng.IntN(2) == 0, Note: name(), Whole: values()}
			for j := range flows {
				tr.Flows = append(tr.Flows, result.Flow{
					Name: string(rune('a' + j)), Label: name(), Finished: rng.IntN(2) == 0, Note: name(),
					Values: values(),
				})
			}
			c.Trials = append(c.Trials, tr)
		}
		cells = append(cells, c)
	}
	return cells
}
