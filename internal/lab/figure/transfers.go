package figure

import (
	"cmp"
	"fmt"
	"math"
	"sort"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Transfers compares transfers of one file by several congestion controls. At the top it shows the
// acknowledged data and the throughput of each transfer. Below, it shows each congestion window
// over some round trips in the middle of the transfer.
type Transfers struct {
	Title string
	Note  string // second, smaller line; may be empty
	// Bound is a throughput in bytes per second, which is drawn as a line; 0: no line.
	Bound float64
	List  []Transfer // must have at least one transfer with samples
}

// Transfer is one of the transfers that a figure compares.
type Transfer struct {
	Name string // name of the congestion control
	// Samples are the samples of one connection, in order of time. Without samples, nothing is
	// drawn.
	Samples []Sample
}

// throughputBins is the number of intervals into which the longest transfer is divided.
const throughputBins = 40

// Plot returns the figure. Without samples, the error is ErrNoSamples.
func (f Transfers) Plot() (*Plot, error) {
	longest, bytes, detail := 0.0, 0.0, math.Inf(1)
	for _, t := range f.List {
		if n := len(t.Samples); n > 0 {
			longest = max(longest, t.Samples[n-1].Seconds-t.Samples[0].Seconds)
			bytes = max(bytes, t.Samples[n-1].Acked)
			part := middle(t.Samples)
			detail = min(detail, part[len(part)-1].Seconds-part[0].Seconds)
		}
	}
	if math.IsInf(detail, 1) {
		return nil, ErrNoSamples
	}
	longest = cmp.Or(longest, 1)
	var windows []chart.Panel
	for _, t := range f.List {
		if len(t.Samples) > 0 {
			windows = append(windows, t.window(detail))
		}
	}
	windows[0].Y.Label = "cwnd, kB"
	top := []chart.Panel{f.progress(bytes), f.throughput(longest)}
	for i := range top {
		top[i].X = chart.Axis{Label: "time, s", Max: 1.02 * longest}
	}
	return &Plot{Title: f.Title, chart: chart.Figure{
		Title: f.Title, Note: f.Note, Alt: f.Title + ". " + f.Note,
		Rows: []chart.Row{{Height: 120, Panels: top}, {Height: 90, Panels: windows}},
	}}, nil
}

func (f Transfers) progress(bytes float64) chart.Panel {
	p := chart.Panel{
		Title: "acknowledged",
		Y:     axis("", result.ScaleOf("bytes", bytes), 0, 1.12*max(bytes, 1)),
	}
	for _, t := range f.List {
		if len(t.Samples) == 0 {
			continue
		}
		line := timeline{origin: t.Samples[0].Seconds}
		p.Layers = append(p.Layers, chart.Layer{
			Name: t.Name, Kind: chart.Line, Paint: PaintOf(t.Name), Width: 1.5,
			Points: points(t.Samples, line.x, func(s *Sample) float64 { return s.Acked }),
		})
	}
	return p
}

// throughput shows the rate of acknowledged data in each interval, and the bound.
func (f Transfers) throughput(longest float64) chart.Panel {
	p := chart.Panel{
		Title: "throughput", Y: chart.Axis{Label: "MB/s", Max: f.Bound, Per: 1e6},
	}
	width := longest / throughputBins
	for _, t := range f.List {
		if len(t.Samples) == 0 {
			continue
		}
		l := chart.Layer{
			Kind: chart.Steps, Paint: PaintOf(t.Name), Width: 1.5, Points: t.rates(width),
		}
		p.Y.Max = max(p.Y.Max, maxY(l.Points))
		p.Layers = append(p.Layers, l)
	}
	p.Y.Max *= 1.12
	if f.Bound > 0 {
		p.Rules = []chart.Rule{{Value: f.Bound, Text: "loss bound", Paint: chart.Ink}}
	}
	return p
}

// rates returns the throughput in bytes/s in each interval of width seconds. The last interval may
// be shorter. If it is shorter than half of width, rates omits it.
func (t *Transfer) rates(width float64) []chart.Point {
	origin, last := t.Samples[0].Seconds, t.Samples[len(t.Samples)-1]
	var list []chart.Point
	acked, i := t.Samples[0].Acked, 0
	for start := 0.0; ; start += width {
		end := min(start+width, last.Seconds-origin)
		if !(end > start) {
			break
		}
		before := acked
		for ; i < len(t.Samples) && t.Samples[i].Seconds-origin <= end; i++ {
			acked = t.Samples[i].Acked
		}
		if rest := end - start; rest >= width/2 || len(list) == 0 {
			list = append(list, chart.Point{X: start, Y: (acked - before) / rest})
		}
	}
	if n := len(list); n > 0 {
		end := last.Seconds - origin
		list = append(list, chart.Point{X: end, Y: list[n-1].Y}, chart.Point{X: end, Y: 0})
	}
	return list
}

// window shows the congestion window during span seconds in the middle of the transfer.
func (t *Transfer) window(span float64) chart.Panel {
	first, last := t.Samples[0].Seconds, t.Samples[len(t.Samples)-1].Seconds
	from := (first+last)/2 - span/2
	at := func(seconds float64) int {
		return sort.Search(len(t.Samples), func(i int) bool {
			return t.Samples[i].Seconds >= seconds
		})
	}
	part := t.Samples[max(0, at(from)-1):min(len(t.Samples), at(from+span)+1)]
	line := newTimeline(part, first)
	line.axis.Min = from - first
	line.axis.Max = line.axis.Min + max(span, 1e-3*line.axis.Per)
	cwnd := points(part, line.x, func(s *Sample) float64 { return s.Cwnd })
	return chart.Panel{
		Title: fmt.Sprintf("%s: cwnd for %s", t.Name, line.length()),
		X:     line.axis,
		Y:     chart.Axis{Max: 1.1 * max(maxY(cwnd), 1e3), Per: 1e3},
		Layers: []chart.Layer{
			{Kind: chart.Steps, Paint: PaintOf(t.Name), Width: 1.2, Points: cwnd},
		},
		Strips: line.strips(part, "RTO"),
	}
}

// Figure shows a transfer: congestion window, round-trip time and sequence over time, with the
// whole transfer on the left and a part of its middle on the right.
type Figure struct {
	Title   string
	Note    string   // second, smaller line; may be empty
	Samples []Sample // samples of one connection, in order of time; required
}

// Plot returns the figure. Without samples, the error is ErrNoSamples.
func (f Figure) Plot() (*Plot, error) {
	if len(f.Samples) == 0 {
		return nil, ErrNoSamples
	}
	whole, detail := f.Samples, middle(f.Samples)
	left, right := newTimeline(whole, whole[0].Seconds), newTimeline(detail, whole[0].Seconds)
	out := chart.Figure{Title: f.Title, Note: f.Note, Alt: f.Title + ". " + f.Note}
	for i, panel := range []struct {
		title string
		draw  func([]Sample, timeline) chart.Panel
	}{
		{"window", transferWindow},
		{"round-trip time", transferRTT},
		{"sequence", transferSequence},
	} {
		l, r := panel.draw(whole, left), panel.draw(detail, right)
		l.Title, l.Share = panel.title, 1.5
		l.X.Bare, r.X.Bare = i < 2, i < 2
		if i == 0 {
			r.Title = "the middle, " + right.length()
		}
		for j := range r.Layers { // the left panel has named them
			r.Layers[j].Name = ""
		}
		out.Rows = append(out.Rows, chart.Row{Height: 100, Panels: []chart.Panel{l, r}})
	}
	return &Plot{Title: f.Title, chart: out}, nil
}
