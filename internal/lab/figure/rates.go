package figure

import (
	"fmt"
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func throughputPlots(v *view) []Plot {
	p := Plot{Name: "throughput", Title: "Throughput"}
	width := binWidth(v)
	var panels []chart.Panel
	for i := range v.links {
		if panel, finding, ok := v.linkPanel(&v.links[i], width); ok {
			panels, p.Finding = append(panels, panel), finding
		}
	}
	p.Caption = fmt.Sprintf("Rate of the packets that left the bottleneck, headers included, "+
		"averaged over %s, stacked by flow", plain(width, "s"))
	if len(panels) == 0 {
		panel, finding, ok := v.progressPanel(width)
		if !ok {
			return nil
		}
		p.Finding = finding
		panels = []chart.Panel{panel}
		p.Caption = fmt.Sprintf("Goodput of the receiving applications, averaged over %s, "+
			"stacked by flow", plain(width, "s"))
	}
	if len(panels) > 1 {
		p.Finding = ""
	}
	if panels[0].Layers[0].Name == capacityName {
		p.Caption += "; the shaded area is the capacity of the link"
	}
	there := len(v.pick(progressed))
	p.Caption += "." + manyFlowsText(there, there)
	p.chart = v.stacked(panels, heightOf(len(panels)))
	return []Plot{p}
}

const (
	maxBins      = 160
	capacityName = "capacity"
)

// binWidth returns the width of a bin: 1, 2 or 5 times a power of ten, at least two round trips,
// and wide enough for at most maxBins bins. Short runs get about four bins.
func binWidth(v *view) float64 {
	least := max(v.end/maxBins, 2*v.RTT.Seconds())
	least = min(least, v.end/4)
	width := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if width*factor >= least*(1-1e-9) {
			return width * factor
		}
	}
	return width * 10
}

type bins struct {
	width, end float64
	sums       []float64
}

func (v *view) bins(width float64) *bins {
	n := int(math.Ceil(v.end/width - 1e-9))
	return &bins{width: width, end: v.end, sums: make([]float64, min(max(n, 1), 4*maxBins))}
}

func (b *bins) add(at time.Duration, amount float64) {
	if i := at.Seconds() / b.width; i >= 0 && i < float64(len(b.sums)) {
		b.sums[int(i)] += amount
	}
}

// rates returns the sums per second. The last step may be shorter than the others.
func (b *bins) rates() []float64 {
	list := make([]float64, len(b.sums))
	for i, sum := range b.sums {
		width := min(b.width, b.end-float64(i)*b.width)
		list[i] = sum / max(width, b.width/100)
	}
	return list
}

// blocks draws steps from one level to the next. The last step extends to the end.
func (b *bins) blocks(upper, lower []float64) []chart.Point {
	list := make([]chart.Point, 0, len(upper)+1)
	for i := range upper {
		p := chart.Point{X: float64(i) * b.width, Y: upper[i]}
		if lower != nil {
			p.Low = lower[i]
		}
		list = append(list, p)
	}
	return lasting(list, b.end)
}

// linkPanel shows a link and the flows whose data it carries.
func (v *view) linkPanel(l *result.LinkRecord, width float64) (chart.Panel, string, bool) {
	flows := v.pick(func(f *flow) bool { return f.link == l })
	own := make([]*bins, len(flows))
	sums := map[int]*bins{}
	for i, f := range flows {
		own[i] = v.bins(width)
		sums[f.index] = own[i]
	}
	if len(flows) == 0 {
		return chart.Panel{}, "", false
	}
	opportunities := v.bins(width)
	for i := range l.Events {
		e := &l.Events[i]
		switch {
		case e.Kind == result.Opportunity:
			opportunities.add(e.At, 8*float64(e.Bytes))
		case e.Kind == result.Departure && sums[e.Flow] != nil:
			sums[e.Flow].add(e.At, 8*float64(e.Bytes))
		}
	}
	capacity := v.capacity(l, opportunities)
	title := ""
	if len(v.links) > 1 && l.Name != "down" {
		title = l.Name
	}
	return v.stackPanel(title, flows, own, capacity)
}

// capacity returns the rate at which a link could have sent over time, in bits per second; nil if
// the rate is unlimited.
func (v *view) capacity(l *result.LinkRecord, opportunities *bins) []chart.Point {
	for _, sum := range opportunities.sums {
		if sum > 0 {
			return opportunities.blocks(opportunities.rates(), nil)
		}
	}
	if len(l.Rates) > 0 {
		var list []chart.Point
		for _, r := range l.Rates {
			list = append(list, chart.Point{X: r.At.Seconds(), Y: r.Value})
		}
		return lasting(list, v.end)
	}
	return v.constant(l.Rate)
}

func (v *view) constant(rate float64) []chart.Point {
	if !(rate > 0) || math.IsInf(rate, 0) {
		return nil
	}
	return []chart.Point{{X: 0, Y: rate}, {X: v.end, Y: rate}}
}

// progressPanel shows the data that the applications received, for records without links.
func (v *view) progressPanel(width float64) (chart.Panel, string, bool) {
	flows := v.pick(progressed)
	var sums []*bins
	for _, f := range flows {
		sums = append(sums, v.progress(f, width))
	}
	if len(flows) == 0 {
		return chart.Panel{}, "", false
	}
	return v.stackPanel("", flows, sums, v.constant(v.Rate))
}

func (v *view) progress(f *flow, width float64) *bins {
	b := v.bins(width)
	before := 0.0
	for _, p := range f.Progress {
		if grown := p.Value - before; grown > 0 && !math.IsInf(grown, 0) {
			b.add(p.At, 8*grown)
			before = p.Value
		}
	}
	return b
}

// stackPanel stacks the rates of flows in front of the link's capacity. ok is false if the flows
// sent nothing.
func (v *view) stackPanel(
	title string, flows []*flow, sums []*bins, capacity []chart.Point,
) (p chart.Panel, finding string, ok bool) {
	total := make([]float64, len(sums[0].sums))
	greatest := maxY(capacity)
	var levels [][]float64
	for _, b := range sums {
		levels = append(levels, append([]float64(nil), total...))
		for i, r := range b.rates() {
			total[i] += r
		}
	}
	sent := 0.0
	for _, r := range total {
		sent += r
		greatest = max(greatest, r)
	}
	if sent == 0 {
		return chart.Panel{}, "", false
	}
	var list []flowBits
	p = chart.Panel{
		Title: title, X: v.time(),
		Y: axis("throughput", result.ScaleOf("bit/s", greatest), 0, 1.06*greatest),
	}
	if len(capacity) > 0 {
		p.Layers = append(p.Layers, chart.Layer{
			Name: capacityName, Kind: chart.Blocks, Paint: chart.Faint, Points: capacity,
		})
	}
	named := keyed(flows)
	for i, f := range flows {
		upper := append([]float64(nil), levels[i]...)
		bits := 0.0
		for j, r := range sums[i].rates() {
			upper[j] += r
			bits += sums[i].sums[j]
		}
		layer := chart.Layer{
			Kind: chart.Blocks, Paint: f.paint, Opacity: 0.85,
			Points: sums[i].blocks(upper, levels[i]),
		}
		list = append(list, flowBits{f, bits})
		if named[f] {
			layer.Name = f.title() + ", " + amount(bits/v.active(f), "bit/s")
		}
		p.Layers = append(p.Layers, layer)
		if i < len(flows)-1 && len(flows) <= maxCurves { // adjacent areas may have one color
			p.Layers = append(p.Layers, chart.Layer{
				Kind: chart.Steps, Paint: chart.Paper, Width: 0.5, Points: layer.Points,
			})
		}
	}
	return p, v.throughputFinding(list, capacity), true
}

func (v *view) active(f *flow) float64 {
	if s := v.end - f.Start.Seconds(); s > 0 && s <= v.end {
		return s
	}
	return v.end
}

// flowBits is the number of bits that a flow sent over its link.
type flowBits struct {
	flow *flow
	bits float64
}

func (v *view) throughputFinding(list []flowBits, capacity []chart.Point) string {
	sum := 0.0
	for _, t := range list {
		sum += t.bits / v.end
	}
	mean, _ := meanOver(capacity, v.end)
	if len(list) == 0 || sum == 0 {
		return ""
	}
	who := list[0].flow.title() + " takes "
	if len(list) > 1 {
		who = fmt.Sprintf("%d flows take ", len(list))
	}
	if infinite(mean) || mean <= 0 {
		return who + amount(sum, "bit/s")
	}
	return who + amount(sum, "bit/s") + " of " + amount(mean, "bit/s") + ", " +
		digits(min(100, 100*sum/mean)) + " %"
}
