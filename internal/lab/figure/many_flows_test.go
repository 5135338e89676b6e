package figure

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Many flows of a kind get different colors in a visible order, and a legend that fits.
func TestManyFlowsHaveARampAndAShortLegend(t *testing.T) {
	rec := synthesize(2*time.Second, 10, 60_000, "reno")
	rec.Flows, rec.Links = slices.Repeat(rec.Flows, 60), nil
	for i := range rec.Flows {
		rec.Flows[i].Name = fmt.Sprint("reno-", i+1)
	}
	plots := Plots(rec)
	windows := plotOf(t, plots, "cwnd")
	layers := windows.chart.Rows[0].Panels[0].Layers
	assert.Len(t, layers, maxLines)
	assert.Contains(t, windows.Caption, "48 of 60 flows are drawn")
	var colors, key []string
	for _, l := range layers {
		colors = append(colors, l.Paint.String())
		if l.Name != "" {
			key = append(key, l.Name)
		}
	}
	assert.Equal(t, []string{"reno-1", "reno-31", "reno-60"}, key)
	slices.Sort(colors)
	assert.Len(t, slices.Compact(colors), maxLines)
	for _, name := range []string{"rtt", "throughput"} {
		found := words(t, plotOf(t, plots, name))
		assert.LessOrEqual(t, strings.Count(strings.Join(found, " "), "reno-"), 3, name)
		assert.Contains(t, strings.Join(found, " "), "reno-60", name)
	}
}

// Two kinds keep their own hues, from dark to light.
func TestTwoKindsOfFlowsKeepTheirColors(t *testing.T) {
	list := shades(append(slices.Repeat([]string{"reno"}, 30), slices.Repeat([]string{"bbr"}, 5)...))
	assert.Equal(t, PaintOf("reno").Tint(-0.65), list[0])
	assert.Equal(t, PaintOf("bbr").Tint(0.65), list[34])
	alike := shades(slices.Repeat([]string{"cubic"}, maxLines))
	for i := 1; i < len(alike); i++ {
		assert.NotEqual(t, alike[i-1], alike[i])
	}
}

// The figure of throughput and delay shows all flows, but only a few names.
func TestTradeoffOfManyFlows(t *testing.T) {
	tr := &result.Trial{Finished: true}
	for i := range 40 {
		tr.Flows = append(tr.Flows, result.Flow{
			Name: fmt.Sprint("f", i), Label: []string{"reno", "bbr"}[i/20], Finished: true,
			Values: result.Values{
				result.Goodput: float64(1+i) * 1e6, result.RTTP95: 0.1 + float64(i%20)/100,
			},
		})
	}
	p := plotOf(t, SweepPlots([]Cell{{Trials: []*result.Trial{tr}}}, nil), "tradeoff")
	panel := &p.chart.Rows[0].Panels[0]
	assert.Len(t, panel.Layers, 3*40)
	var named []string
	for _, n := range panel.Names {
		named = append(named, n.Text)
	}
	assert.Equal(t, []string{"f0", "f19", "f20", "f39"}, named)
}

// The table of a report summarizes many flows.
func TestReportOfManyFlows(t *testing.T) {
	tr := &result.Trial{Finished: true, Whole: result.Values{result.Jain: 0.9}}
	for i := range 40 {
		tr.Flows = append(tr.Flows, result.Flow{
			Name: fmt.Sprint("f", i), Label: "reno", Finished: true,
			Values: result.Values{result.Goodput: float64(1+i) * 1e6},
		})
	}
	page := reportOf(t, &Report{Name: "x", Cells: []Cell{{Trials: []*result.Trial{tr}}}})
	requireWhole(t, page)
	results := page[strings.Index(page, "<h2>Results"):strings.Index(page, "<h2>All numbers")]
	assert.Equal(t, 1+3+1, strings.Count(results, "<tr"))
	for _, want := range []string{"minimum of 40", "median of 40", "maximum of 40", "20.5", "One run of each cell"} {
		assert.Contains(t, results, want)
	}
}

// A transfer that is too short to see is drawn with a minimum length. Short runs have an axis in
// milliseconds.
func TestShortTransfersOfObjectsAreVisible(t *testing.T) {
	const ms = time.Millisecond
	rec := &result.Record{Duration: 600 * time.Second, Objects: []result.Object{
		{Flow: "a", Size: 1_000_000, End: 150 * ms, Done: true},
		{Flow: "a", Size: 1000, Start: 150 * ms, End: 150*ms + 1000, Done: true},
	}}
	p := plotOf(t, Plots(rec), "objects")
	panel := &p.chart.Rows[0].Panels[0]
	assert.InDelta(t, minMark, layer(t, panel, "small").MinLength, 1e-9)
	found := words(t, p)
	assert.Contains(t, found, "time, ms")
	assert.Contains(t, found, "140")
}

// A queue with many changes is drawn as a mean with a band. A queue in which packets hardly wait is
// left out. Packets lost by the link are not counted as drops of its queue.
func TestQueueOfALongRun(t *testing.T) {
	l := result.LinkRecord{Name: "down", Rate: 1e7, Limit: 60_000}
	for i := range 20_000 {
		at := time.Duration(i) * time.Millisecond
		l.Events = append(l.Events, result.LinkEvent{
			At: at, Kind: result.Departure, Flow: 0, Bytes: 1500,
			Queued: 30_000 * (i % 2), Wait: 10 * time.Millisecond,
		})
	}
	l.Events = append(l.Events, result.LinkEvent{At: 19 * time.Second, Kind: result.Drop, Why: "loss"})
	rec := &result.Record{
		Duration: 20 * time.Second, RTT: 40 * time.Millisecond, Links: []result.LinkRecord{l},
	}
	p := plotOf(t, Plots(rec), "queue")
	panels := p.chart.Rows
	assert.InDelta(t, 15_000, layer(t, &panels[0].Panels[0], "mean").Points[100].Y, 200)
	band := layer(t, &panels[0].Panels[0], "minimum to maximum").Points[100]
	assert.Equal(t, chart.Point{X: band.X, Y: 30_000}, band)
	strips := panels[len(panels)-1].Panels[0].Strips
	require.Len(t, strips, 1)
	assert.Equal(t, "lost", strips[0].Name)
	assert.Contains(t, p.Finding, "no packet is dropped")

	for i := range l.Events {
		l.Events[i].Wait = time.Microsecond
	}
	assert.Empty(t, Plots(rec))
}

// If a window has too many decreases to show, the figure has a detail on the right.
func TestWindowOfManyTeethHasADetail(t *testing.T) {
	rec := &result.Record{Duration: 600 * time.Second, Flows: []result.FlowRecord{{Name: "a", MSS: 1000}}}
	for i := range 2000 {
		rec.Flows[0].Samples = append(rec.Flows[0].Samples, result.Sample{
			At: time.Duration(i) * 300 * time.Millisecond, Cwnd: 1000 * (1 + i%20),
		})
	}
	row := plotOf(t, Plots(rec), "cwnd").chart.Rows[0]
	require.Len(t, row.Panels, 2)
	assert.InDelta(t, 600.0*detailTeeth/99, row.Panels[1].X.Max-row.Panels[1].X.Min, 1)
	assert.Contains(t, plotOf(t, Plots(rec), "cwnd").Finding, "mean 10.5 segments")
}

// Curves whose settings are "on" and "off" are named after their flows.
func TestCurvesOfOnAndOffAreNamedByFlows(t *testing.T) {
	var cells []Cell
	for _, loss := range []string{"10%", "20%", "30%"} {
		for i, classic := range []string{"off", "on"} {
			cells = append(cells, Cell{
				Set: []Setting{{"loss", loss}, {"classic_window", classic}},
				Trials: []*result.Trial{{Finished: true, Flows: []result.Flow{{
					Name: "echo", Label: []string{"fence", "window"}[i], Finished: true,
					Values: result.Values{result.ClientSent: float64(20_000 * (i + 1))},
				}}}},
				Theory: result.Values{result.ClientSent: 20_500},
			})
		}
	}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.ClientSent}), "sweep")
	found := words(t, p)
	for _, want := range []string{"fence", "window", "theory", "client's packets, thousands", "40"} {
		assert.Contains(t, found, want)
	}
	assert.NotContains(t, found, "off")
	assert.Contains(t, p.Finding, "(fence)")
}

// Sizes that the file has in bytes are shown in megabytes.
func TestLongNumbersAreInLargerUnits(t *testing.T) {
	q, ok := measure([]string{"5185067B", "37629571B", "92339236B"})
	require.True(t, ok)
	assert.Equal(t, "MB", q.unit)
	assert.InDelta(t, 5.185067, q.values[0], 1e-9)
	q, ok = measure([]string{"1000ms", "2000ms"})
	require.True(t, ok)
	assert.Equal(t, quantities{[]float64{1000, 2000}, "ms"}, q)
}

// Cells whose values differ by large factors share a logarithmic axis.
func TestBoxesOfDifferentCells(t *testing.T) {
	var cells []Cell
	for i, arm := range []string{"slow", "fast"} {
		cells = append(cells, Cell{
			Set: []Setting{{"arm", arm}},
			Trials: []*result.Trial{{Finished: true, Flows: []result.Flow{{
				Name: "a", Label: arm, Finished: true,
				Values: result.Values{result.Completion: []float64{10, 0.04}[i]},
			}}}},
		})
	}
	p := plotOf(t, SweepPlots(cells, []result.Metric{result.Completion}), "spread")
	assert.True(t, p.chart.Rows[0].Panels[0].X.Log)
	assert.Equal(t, "Cells compared", p.Title)
}
