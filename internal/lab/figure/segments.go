package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// maxSequences limits the number of flows with a time-sequence figure.
const maxSequences = 4

// detailSegments limits the number of segments in a detail, so that each remains legible.
const detailSegments = 160

// sequencePlots show the segments that each flow's sender sent, and the acknowledgments that it
// received, as tcptrace does.
func sequencePlots(v *view) []Plot {
	flows := v.pick((*flow).sentSomething)
	flows = flows[:min(len(flows), maxSequences)]
	if len(flows) == 0 {
		return nil
	}
	p := Plot{Name: "sequence", Title: "Time and sequence", Finding: sequenceFinding(flows)}
	detailed := false
	for _, f := range flows {
		row := chart.Row{Height: 200}
		if len(flows) > 1 {
			row.Height = 140
		}
		whole := v.sequencePanel(f, stretch{0, v.end}, false)
		whole.Moments = v.moments()
		row.Panels = []chart.Panel{whole}
		if s := v.detail(f); s.to-s.from < 0.7*v.end {
			detailed = true
			row.Panels = append(row.Panels, v.sequencePanel(f, s, true))
		}
		p.chart.Rows = append(p.chart.Rows, row)
	}
	p.Caption = "Each bar is a segment, from its first byte to its last, at the time when it " +
		"was sent. The line below is the acknowledgment number."
	if detailed {
		p.Caption += " Right: a detail. R marks retransmissions, small bars on the line are " +
			"duplicate acknowledgments, bars above it are SACK blocks."
	}
	return []Plot{p}
}

func (f *flow) sentSomething() bool {
	return slices.ContainsFunc(f.Segments, func(s result.Segment) bool {
		return !s.Received && s.Len > 0
	})
}

// stretch is a range of time, in seconds.
type stretch struct{ from, to float64 }

func (s stretch) has(at float64) bool { return at >= s.from && at <= s.to }

// detail returns the time range of a few round trips around the retransmission that loss returns.
// If nothing was retransmitted, it returns the first round trips.
func (v *view) detail(f *flow) stretch {
	rtt := v.baseRTT(f)
	for i := range f.Samples {
		rtt = max(rtt, min(f.Samples[i].SRTT.Seconds(), 10*rtt))
	}
	if rtt == 0 {
		rtt = v.end / 200
	}
	s := stretch{f.Start.Seconds(), f.Start.Seconds() + 6*rtt}
	if at, ok := v.loss(f); ok {
		s = stretch{at - 0.5*rtt, at + 3*rtt}
	}
	s.from = max(0, s.from)
	n, to := 0, s.to
	for i := range f.Segments {
		if g := &f.Segments[i]; !g.Received && s.has(g.At.Seconds()) {
			if n++; n > detailSegments {
				to = g.At.Seconds()
				break
			}
		}
	}
	// There are too many segments: show only those near the loss.
	if at, ok := v.loss(f); ok && to < at+rtt/5 {
		half := max(rtt/5, (to-s.from)/2)
		s.from, to = max(0, at-half), at+half
	}
	s.to = min(to, v.end)
	if s.to <= s.from {
		return stretch{0, v.end}
	}
	return s
}

func (f *flow) span() float64 {
	return (f.Segments[len(f.Segments)-1].At - f.Segments[0].At).Seconds()
}

// loss returns the time of the first retransmission after two round trips without any. Of several
// such times, it takes the one nearest to a third of the run.
func (v *view) loss(f *flow) (at float64, found bool) {
	best := math.Inf(1)
	last := math.Inf(-1)
	for i := range f.Segments {
		s := &f.Segments[i]
		if !s.Again || s.Received || s.Len <= 0 {
			continue
		}
		t := s.At.Seconds()
		if fresh := t-last > 2*v.baseRTT(f); fresh && math.Abs(t-v.end/3) < best {
			best, at, found = math.Abs(t-v.end/3), t, true
		}
		last = t
	}
	return at, found
}

type trace struct {
	data, again, acks, window, sacks, twice []chart.Point
	low, high                               float64
}

// follow returns the segments of a flow within a time range. Lines that begin before the range
// start at its left edge.
func (f *flow) follow(s stretch) trace {
	t := trace{low: math.Inf(1), high: math.Inf(-1)}
	if s.to-s.from >= f.span() { // the range includes all segments: allocate memory once
		n := len(f.Segments)/2 + 1
		t.data, t.acks = make([]chart.Point, 0, n), make([]chart.Point, 0, n)
		t.window = make([]chart.Point, 0, n)
	}
	var ack, window chart.Point
	acked := false
	for i := range f.Segments {
		g := &f.Segments[i]
		at := g.At.Seconds()
		if at > s.to {
			break
		}
		if g.Received {
			p := chart.Point{X: at, Y: float64(g.Ack)}
			again := acked && p.Y == ack.Y && g.Len == 0
			ack = p
			window = chart.Point{X: at, Y: float64(g.Ack) + float64(max(g.Window, 0))}
			acked = true
			if at < s.from {
				continue
			}
			t.acked(g, p, window, again)
			continue
		}
		if at < s.from || g.Len <= 0 {
			continue
		}
		if len(t.acks) == 0 && acked {
			ack.X, window.X = s.from, s.from
			t.acks, t.window = append(t.acks, ack), append(t.window, window)
			t.low = min(t.low, ack.Y)
		}
		from, to := float64(g.Seq), float64(g.Seq)+float64(g.Len)
		t.low, t.high = min(t.low, from), max(t.high, to)
		bar := chart.Point{X: at, Y: to, Low: from}
		if g.Again {
			t.again = append(t.again, bar)
		} else {
			t.data = append(t.data, bar)
		}
	}
	if n := len(t.acks); n > 0 {
		t.acks = append(t.acks, chart.Point{X: s.to, Y: t.acks[n-1].Y})
		t.window = append(t.window, chart.Point{X: s.to, Y: t.window[n-1].Y})
	}
	return t
}

func (t *trace) acked(g *result.Segment, ack, window chart.Point, again bool) {
	t.acks, t.window = append(t.acks, ack), append(t.window, window)
	t.low, t.high = min(t.low, ack.Y), max(t.high, ack.Y)
	if again {
		t.twice = append(t.twice, ack)
	}
	for _, block := range g.SACK {
		t.sacks = append(t.sacks, chart.Point{
			X: ack.X, Y: float64(block[1]), Low: float64(block[0]),
		})
	}
}

func (v *view) sequencePanel(f *flow, s stretch, detail bool) chart.Panel {
	t := f.follow(s)
	span := t.high - t.low
	p := chart.Panel{X: timeAxis(s.from, s.to), Y: axis("sequence",
		result.ScaleOf("bytes", t.high), t.low-0.03*span, t.high+0.08*span)}
	for i := range t.twice {
		t.twice[i].Low = t.twice[i].Y - 0.018*span
	}
	if !detail {
		p.Y.Min = max(p.Y.Min, 0)
		p.Title, p.Share = f.title(), 1.15
		for i := range t.again { // the height of a segment would be too small to see
			t.again[i].Low = min(t.again[i].Low, t.again[i].Y-0.02*span)
		}
	}
	if !slices.ContainsFunc(t.window, func(q chart.Point) bool { return q.Y < p.Y.Max }) {
		t.window = nil
	}
	weight := 0.9
	if detail {
		weight = 1.1
	}
	red := retransmitPaint(f)
	p.Layers = []chart.Layer{
		{Name: "acknowledged", Kind: chart.Steps, Paint: chart.Ink, Width: 0.7, Points: t.acks},
		{Name: "segments", Kind: chart.Bars, Paint: f.paint, Width: weight, Points: t.data},
		{Name: "retransmitted", Kind: chart.Bars, Paint: red, Width: weight + 0.4, Points: t.again},
		{
			Name: "window offered", Kind: chart.Steps, Paint: chart.Soft, Width: 0.7,
			Points: t.window,
		},
	}
	if !detail {
		return p
	}
	for i := range p.Layers { // the panel of the whole run has named them
		p.Layers[i].Name = ""
	}
	p.Layers = append(p.Layers,
		chart.Layer{
			Name: "SACK", Kind: chart.Bars, Paint: chart.Purple, Width: 0.6,
			Points: t.sacks,
		},
		chart.Layer{
			Name: "duplicate ACK", Kind: chart.Bars, Paint: chart.Ink, Width: 0.7, Points: t.twice,
		},
		chart.Layer{
			Kind: chart.Letters, Text: "R", Paint: red, AtLeft: true,
			Points: middles(spaced(t.again, (s.to-s.from)/40)),
		})
	return p
}

// spaced returns the first point and each that is more than a distance after the last one returned.
func spaced(list []chart.Point, distance float64) []chart.Point {
	var kept []chart.Point
	for i, p := range list {
		if i == 0 || p.X-kept[len(kept)-1].X > distance {
			kept = append(kept, p)
		}
	}
	return kept
}

func middles(bars []chart.Point) []chart.Point {
	list := make([]chart.Point, len(bars))
	for i, b := range bars {
		list[i] = chart.Point{X: b.X, Y: (b.Y + b.Low) / 2}
	}
	return list
}

// retransmitPaint returns red, or another color if the flow is red.
func retransmitPaint(f *flow) chart.Paint {
	if PaintOf(f.Label) == chart.Vermillion {
		return chart.Ink
	}
	return chart.Vermillion
}

func sequenceFinding(flows []*flow) string {
	if len(flows) > maxNamed {
		return ""
	}
	var parts []string
	for _, f := range flows {
		if len(f.Samples) == 0 || f.MSS <= 0 {
			return ""
		}
		last := &f.Samples[len(f.Samples)-1]
		sent := float64(last.BytesSent) / float64(f.MSS)
		if sent < 1 {
			return ""
		}
		share := digits(100*float64(last.Retransmits)/sent) + " %"
		if len(flows) == 1 {
			return fmt.Sprintf("%s retransmitted (%s)", plural(int(last.Retransmits), "segment"),
				share)
		}
		parts = append(parts, share+" of "+f.title()+"'s")
	}
	return listed(parts) + " segments are retransmitted"
}
