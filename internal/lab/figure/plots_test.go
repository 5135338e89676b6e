package figure

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

func names(plots []Plot) []string {
	var list []string
	for _, p := range plots {
		list = append(list, p.Name)
	}
	return list
}

func plotOf(t *testing.T, plots []Plot, name string) *Plot {
	t.Helper()
	for i := range plots {
		if plots[i].Name == name {
			return &plots[i]
		}
	}
	require.Fail(t, "no such plot", "%s in %v", name, names(plots))
	return nil
}

// words returns the words in a plot's SVG.
func words(t *testing.T, p *Plot) []string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.Write(&b, "svg", Style{}))
	return texts(t, b.Bytes())
}

func layer(t *testing.T, p *chart.Panel, name string) *chart.Layer {
	t.Helper()
	for i := range p.Layers {
		if strings.HasPrefix(p.Layers[i].Name, name) {
			return &p.Layers[i]
		}
	}
	require.Fail(t, "no such layer", name)
	return nil
}

func TestPlotsOfARun(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno", "cubic")
	plots := Plots(rec)
	assert.Equal(t,
		[]string{"cwnd", "rtt", "sequence", "throughput", "queue", "flight", "fairness"}, names(plots))
	for i := range plots {
		p := &plots[i]
		assert.NotEmpty(t, p.Title)
		assert.Regexp(t, `^[A-Z].*\.$`, p.Caption)
		found := words(t, p)
		assert.Contains(t, found, "time, s", p.Name)
		if p.Name != "queue" {
			assert.Contains(t, strings.Join(found, " "), "reno", p.Name)
		}
	}
}

// Each variable of a flow's script has a panel. Missing values are gaps.
func TestRecordedVariables(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno", "cubic")
	rec.Flows[0].Own = []string{"alpha", "never"}
	for i := range rec.Flows[0].Samples {
		if i > 5 {
			rec.Flows[0].Samples[i].Own = []float64{float64(i) / 100, math.NaN()}
		}
	}
	p := plotOf(t, Plots(rec), "recorded")
	require.Len(t, p.chart.Rows, 1, "a variable without a value is not drawn")
	panel := p.chart.Rows[0].Panels[0]
	assert.Equal(t, "alpha", panel.Y.Label)
	assert.True(t, math.IsNaN(panel.Layers[0].Points[5].Y))
	assert.InDelta(t, 0.06, panel.Layers[0].Points[6].Y, 1e-9)
	assert.Contains(t, words(t, p), "alpha")
}

func TestWindowPlotHasTheBDP(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno")
	p := plotOf(t, Plots(rec), "cwnd")
	panel := &p.chart.Rows[0].Panels[0]
	require.Len(t, panel.Rules, 2)
	// At 10 Mbit/s, 50 kB are sent in 40 ms. A packet of 1500 bytes has 1448 bytes of payload.
	assert.Equal(t, "BDP", panel.Rules[0].Text)
	assert.InDelta(t, 50_000.0*1448/1500, panel.Rules[0].Value, 10)
	assert.InDelta(t, 110_000.0*1448/1500, panel.Rules[1].Value, 10)
	// Reno fills the path and its queue.
	assert.InDelta(t, panel.Rules[1].Value, maxY(layer(t, panel, "cwnd").Points), 3*1448)
	assert.Equal(t, []string{"lost", "recovery"}, []string{panel.Strips[0].Name, panel.Strips[1].Name})
	assert.Contains(t, p.Caption, "segments of 1448 bytes")
	assert.Contains(t, p.Caption, "(60 kB)")
}

func TestPacketSizeOfMergedEvents(t *testing.T) {
	for _, c := range []struct {
		sizes map[int]int
		mss   int
		want  float64
	}{
		{map[int]int{1500: 900, 600: 20, 60: 1}, 1448, 1500},
		{map[int]int{3000: 900, 1560: 1}, 1448, 1500},
		{map[int]int{12000: 9}, 1448, 1500},
		{map[int]int{81: 9}, 49, 81},
		{map[int]int{60: 9}, 1448, 0},
		{map[int]int{4000: 9}, 1448, 0},
		{nil, 1448, 0},
	} {
		assert.InDelta(t, c.want, packetSize(c.sizes, c.mss), 1e-9, "%v", c.sizes)
	}
}

func TestRoundTripsAreWithinTheQueue(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno")
	p := plotOf(t, Plots(rec), "rtt")
	over := &p.chart.Rows[0].Panels[0]
	assert.InDelta(t, 0.040, over.Rules[0].Value, 1e-9)
	assert.InDelta(t, 0.088, over.Rules[1].Value, 1e-9)
	for _, s := range layer(t, over, "samples").Points {
		if !math.IsNaN(s.Y) {
			require.True(t, s.Y >= 0.040 && s.Y < 0.092, "%v", s)
		}
	}
	spread := p.chart.Rows[0].Panels[1].Layers[0].Points
	assert.InDelta(t, 1, spread[len(spread)-1].Y, 1e-12)
	for i := 1; i < len(spread); i++ {
		require.True(t, spread[i].X >= spread[i-1].X && spread[i].Y >= spread[i-1].Y)
	}
}

func TestThroughputIsStackedUpToTheCapacity(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno", "reno")
	p := plotOf(t, Plots(rec), "throughput")
	panel := &p.chart.Rows[0].Panels[0]
	assert.InDelta(t, 10e6, maxY(layer(t, panel, "capacity").Points), 1)
	lower, upper := layer(t, panel, "a (reno), "), layer(t, panel, "b (reno), ")
	for i := range upper.Points {
		assert.InDelta(t, lower.Points[i].Y, upper.Points[i].Low, 1e-9, "the areas are stacked")
	}
	assert.InDelta(t, 10e6, upper.Points[len(upper.Points)/2].Y, 0.3e6)
	assert.NotEqual(t, lower.Paint, upper.Paint)
}

func TestCapacityOfTracesAndSchedules(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno")
	rec.Links[0].Rates = []result.Point{{Value: 10e6}, {At: 5 * time.Second, Value: 4e6}}
	panel := &plotOf(t, Plots(rec), "throughput").chart.Rows[0].Panels[0]
	shade := layer(t, panel, "capacity").Points
	require.Len(t, shade, 3)
	assert.InDelta(t, 4e6, shade[1].Y, 1)
	for at := time.Duration(0); at < rec.Duration; at += time.Millisecond {
		rec.Links[0].Events = append(rec.Links[0].Events, result.LinkEvent{
			At: at, Kind: result.Opportunity, Flow: -1, Bytes: 1504,
		})
	}
	panel = &plotOf(t, Plots(rec), "throughput").chart.Rows[0].Panels[0]
	assert.InDelta(t, 12.032e6, maxY(layer(t, panel, "capacity").Points), 0.2e6)
}

func TestThroughputWithoutLinksIsTheGoodput(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno")
	rec.Links = nil
	p := plotOf(t, Plots(rec), "throughput")
	assert.Contains(t, p.Caption, "receiving applications")
	flow := layer(t, &p.chart.Rows[0].Panels[0], "reno")
	assert.InDelta(t, 9.65e6, flow.Points[len(flow.Points)/2].Y, 0.3e6)
}

func TestUpwardFlows(t *testing.T) {
	rec := synthesize(4*time.Second, 10, 60_000, "reno")
	rec.Links[0].Name, rec.Flows[0].Upward = "up", true
	p := plotOf(t, Plots(rec), "throughput")
	assert.Len(t, p.chart.Rows, 1)
	assert.Contains(t, names(Plots(rec)), "queue-up")
}

func TestSequencePlotHasADetailOfALoss(t *testing.T) {
	rec := synthesize(10*time.Second, 10, 60_000, "reno")
	p := plotOf(t, Plots(rec), "sequence")
	require.Len(t, p.chart.Rows[0].Panels, 2)
	detail := &p.chart.Rows[0].Panels[1]
	assert.Less(t, detail.X.Max-detail.X.Min, 0.5)
	found := words(t, p)
	for _, want := range []string{"R", "SACK", "duplicate ACK", "segments", "acknowledged"} {
		assert.Contains(t, found, want)
	}
}

func TestQueueStaysBelowItsLimit(t *testing.T) {
	rec := synthesize(4*time.Second, 10, 60_000, "reno")
	l := &rec.Links[0]
	// An observer of the link gets the arrival event first, and then the drop.
	var seen []result.LinkEvent
	for _, e := range l.Events {
		if e.Kind == result.Drop {
			come := e
			come.Kind, come.Queued = result.Arrival, e.Queued+1500
			seen = append(seen, come)
		}
		seen = append(seen, e)
	}
	l.Events = seen
	panel := &plotOf(t, Plots(rec), "queue").chart.Rows[0].Panels[0]
	assert.InDelta(t, 60_000, maxY(panel.Layers[0].Points), 1e-9)
	assert.Equal(t, "limit", panel.Rules[0].Text)
}

func TestManyFlowsShareAPanel(t *testing.T) {
	labels := []string{"cubic", "reno", "bbr", "tahoe", "newreno", "fixed"}
	plots := Plots(synthesize(4*time.Second, 10, 60_000, labels...))
	p := plotOf(t, plots, "cwnd")
	require.Len(t, p.chart.Rows, 1)
	assert.Len(t, p.chart.Rows[0].Panels[0].Layers, len(labels))
	assert.Len(t, plotOf(t, plots, "flight").chart.Rows, maxPanels)
}

func TestEmptyPlotsAreOmitted(t *testing.T) {
	assert.Empty(t, Plots(&result.Record{}))
	assert.Empty(t, Plots(&result.Record{
		Duration: time.Second, Rate: 1e6, Flows: []result.FlowRecord{{Name: "a"}, {Name: "b"}},
		Links: []result.LinkRecord{{Name: "down"}, {Name: "up"}},
		Marks: []result.Mark{{At: 1, Text: "x"}},
	}))
	rec := synthesize(2*time.Second, 10, 60_000, "reno")
	rec.Flows[0].Samples = nil
	assert.Equal(t, []string{"sequence", "throughput", "queue"}, names(Plots(rec)))
}

func TestObjects(t *testing.T) {
	rec := &result.Record{Duration: 5 * time.Second, Flows: []result.FlowRecord{{Name: "a", Label: "rdt"}}}
	for i := range 20 {
		rec.Objects = append(rec.Objects, result.Object{
			Flow: "a", Name: "o", Size: 1000 + 100_000*(i%2), Start: time.Duration(i) * time.Millisecond,
			End: time.Duration(i+1) * 100 * time.Millisecond, Done: i != 7,
		})
	}
	p := plotOf(t, Plots(rec), "objects")
	panel := &p.chart.Rows[0].Panels[0]
	assert.InDelta(t, 2.04, panel.X.Max, 1e-9, "up to the last completion")
	assert.Equal(t, PaintOf("rdt"), panel.Layers[0].Paint)
	assert.Contains(t, p.Caption, "Dashed")
	assert.Len(t, layer(t, panel, "not complete").Points, 3)
}

func TestColorsOfLabels(t *testing.T) {
	for label, want := range map[string]chart.Paint{
		"reno": chart.Sky, "Reno": chart.Sky, "cubic": chart.Blue, "tcp cubic": chart.Blue,
		"rcp fence": chart.Green, "rcp window": chart.Orange, "bbr": chart.Vermillion,
		"tahoe": chart.Orange, "quic": chart.Purple, "rdt": chart.Vermillion, "tcp": chart.Blue,
	} {
		assert.Equal(t, want, PaintOf(label), label)
	}
	for _, name := range congestion.Names() {
		assert.Contains(t, paints, name)
	}
	assert.Contains(t, otherPaints, PaintOf("mine.star"))
	seen := map[chart.Paint]bool{}
	for _, p := range shades(append(slices.Repeat([]string{"reno"}, maxCurves), "cubic")) {
		assert.False(t, seen[p], "flows of one figure have different colors")
		seen[p] = true
	}
}

func TestAmounts(t *testing.T) {
	for _, c := range []struct {
		value float64
		base  result.Unit
		want  string
	}{
		{1e6, "bit/s", "1.00 Mbit/s"},
		{999.7e3, "bit/s", "1000 kbit/s"},
		{0.176, "s", "176 ms"},
		{42e-6, "s", "42.0 µs"},
		{61.28, "s", "61.3 s"},
		{2.5, "s", "2.50 s"},
		{26400, "bytes", "26.4 kB"},
		{0.9987, "", "0.999"},
		{68, "packets", "68.0 packets"},
		{0, "s", "0 s"},
		{-0.5, "", "−0.500"},
		{math.NaN(), "s", "– µs"},
		{1e9, "packets", "1e+09 packets"},
		{9.999, "", "10.0"},
		{0.09996, "", "0.100"},
		{12345, "packets", "12345 packets"},
	} {
		assert.Equal(t, c.want, amount(c.value, c.base))
	}
}

func TestMeansHaveTheDecimalsOfTheirIntervals(t *testing.T) {
	for _, c := range []struct {
		mean, half float64
		want       string
	}{
		{9.2, 0.4968, "9.20 ± 0.50"},
		{64.9497, 0.0087, "64.95 ± 0.01"},
		{180.0001, 0.0005, "180.0 ± 0.0"},
		{81438.3, 1166, "81438 ± 1166"},
		{93, 88.92, "93 ± 89"},
		{0, 0, "0 ± 0"},
		{0.7861, 0.0098, "0.7861 ± 0.0098"},
		{-3, 0.25, "−3.00 ± 0.25"},
		{0, 0.5, "0.00 ± 0.50"},
		{29.5, 1.1, "29.5 ± 1.1"},
	} {
		mean, half := formatInterval(c.mean, c.half)
		assert.Equal(t, c.want, mean+" ± "+half)
	}
}

// hostile returns a record with random values in all fields.
func hostile(rng *rand.Rand) *result.Record {
	number := func() float64 {
		list := []float64{0, 1, -1, 1e6, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, 5e-324}
		return list[rng.IntN(len(list))]
	}
	whole := func() int {
		list := []int{0, 1, -1, 1448, math.MaxInt64, math.MinInt64, 1 << 40, 100}
		return list[rng.IntN(len(list))]
	}
	span := func() time.Duration {
		list := []int{0, 1, -1, 1e9, 1e6, math.MaxInt64, math.MinInt64, rng.IntN(1e9), rng.IntN(1e9)}
		return time.Duration(list[rng.IntN(len(list))])
	}
	name := func() string {
		list := []string{"", "a", "<script>", "\x00\xff", strings.Repeat("long ", 50), "down", "up"}
		return list[rng.IntN(len(list))]
	}
	rec := &result.Record{Title: name(), Duration: span(), RTT: span(), Rate: number()}
	for range rng.IntN(7) {
		f := result.FlowRecord{
			Name: name(), Label: name(), Start: span(), RTT: span(), MSS: whole(), Upward: rng.IntN(2) == 0,
		}
		for range rng.IntN(20) {
			f.Samples = append(f.Samples, result.Sample{
				At: span(), Cwnd: whole(), Ssthresh: whole(), RTT: span(), SRTT: span(),
				InFlight: whole(), SendWindow: whole(), Timeouts: rng.Uint64N(3), State: name(),
			})
			f.Segments = append(f.Segments, result.Segment{
				At: span(), Received: rng.IntN(2) == 0, Seq: rng.Uint64N(5000), Len: whole(),
				Ack: rng.Uint64(), Window: whole(), Again: rng.IntN(2) == 0,
				SACK: [][2]uint64{{rng.Uint64(), 7}},
			})
			f.Progress = append(f.Progress, result.Point{At: span(), Value: number()})
		}
		rec.Flows = append(rec.Flows, f)
		rec.Objects = append(rec.Objects, result.Object{
			Flow: name(), Name: name(), Size: whole(), Start: span(), End: span(), Done: rng.IntN(2) == 0,
		})
	}
	for range rng.IntN(4) {
		l := result.LinkRecord{Name: name(), Rate: number(), Limit: whole()}
		for range rng.IntN(30) {
			kinds := []result.LinkEventKind{'+', '-', 'd', '#', 'm', 'x'}
			l.Events = append(l.Events, result.LinkEvent{
				At: span(), Kind: kinds[rng.IntN(len(kinds))], Flow: rng.IntN(8) - 1, Bytes: whole(),
				Wait: span(), Queued: whole(), Why: name(),
			})
			l.Rates = append(l.Rates, result.Point{At: span(), Value: number()})
		}
		rec.Links = append(rec.Links, l)
	}
	rec.Marks = append(rec.Marks, result.Mark{At: span(), Text: name()})
	return rec
}

func FuzzPlots(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rec := hostile(rand.New(rand.NewPCG(seed, 1)))
		for _, p := range Plots(rec) {
			var b bytes.Buffer
			require.NoError(t, p.Write(&b, "svg", Style{}))
			texts(t, b.Bytes()) // requires that the SVG is well-formed
			assert.NotContains(t, b.String(), "NaN")
			assert.NotContains(t, b.String(), "<script")
		}
	})
}
