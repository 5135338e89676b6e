package figure

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// detailRoundTrips is how long the detail is, and detailSamples how many samples it has at least: a
// round trip at the start of a slow path may have one.
const (
	detailRoundTrips = 120
	detailSamples    = 40
)

// middle picks a few round trips around the middle of the transfer.
func middle(samples []Sample) []Sample {
	n := len(samples)
	first, last := samples[0].Seconds, samples[n-1].Seconds
	half := min(detailRoundTrips*MeanRTT(samples).Seconds(), (last-first)/4) / 2
	center := (first + last) / 2
	at := func(seconds float64) int {
		return sort.Search(n, func(i int) bool { return samples[i].Seconds >= seconds })
	}
	from, to := at(center-half), at(center+half)
	if to-from < detailSamples {
		from = min(from, at(center)-detailSamples/2)
		to = max(to, from+detailSamples)
	}
	from, to = max(from, 0), min(to, n)
	if from == to {
		return samples
	}
	return samples[from:to]
}

// timeline is the horizontal axis of a stretch of time: its unit, and where it begins and ends,
// counted from the first sample of the whole transfer.
type timeline struct {
	origin     float64
	factor     float64
	unit       string
	start, end float64
}

func newTimeline(samples []Sample, origin float64) timeline {
	t := timeline{origin: origin, factor: 1, unit: "s"}
	first, last := samples[0].Seconds, samples[len(samples)-1].Seconds
	if last-first < 0.5 {
		t.factor, t.unit = 1e3, "ms"
	}
	t.start, t.end = t.x(&samples[0]), t.x(&samples[len(samples)-1])
	if t.start == t.end {
		t.end++
	}
	return t
}

// length says how long it is.
func (t timeline) length() string { return fmt.Sprintf("%.3g %s", t.end-t.start, t.unit) }

func (t timeline) x(s *Sample) float64 { return (s.Seconds - t.origin) * t.factor }

// series is one curve of the samples; where the value is no number it has a gap.
func (t timeline) series(
	samples []Sample, columns int, value func(*Sample) float64,
) []plotter.XYs {
	var pieces []plotter.XYs
	var piece plotter.XYs
	flush := func() {
		if len(piece) > 1 {
			pieces = append(pieces, thin(piece, columns))
		}
		piece = nil
	}
	for i := range samples {
		y := value(&samples[i])
		if math.IsNaN(y) {
			flush()
			continue
		}
		piece = append(piece, plotter.XY{X: t.x(&samples[i]), Y: y})
	}
	flush()
	return pieces
}

// within is a value that is set: above zero and at most limit; else it is no number.
func within(y, limit float64) float64 {
	if y > 0 && y <= limit {
		return y
	}
	return math.NaN()
}

// greatest is the largest value of the samples.
func greatest(samples []Sample, value func(*Sample) float64) float64 {
	most := 0.0
	for i := range samples {
		most = max(most, value(&samples[i]))
	}
	return most
}

// byteUnit is the unit in which that many bytes read best, and how many bytes it is.
func byteUnit(bytes float64) (unit string, size float64) {
	switch {
	case bytes >= 1e9:
		return "GB", 1e9
	case bytes >= 1e6:
		return "MB", 1e6
	case bytes >= 1e3:
		return "kB", 1e3
	default:
		return "bytes", 1
	}
}

// atTop moves events to a height, for marks that stand above the curves.
func atTop(found []event, height float64) plotter.XYs {
	var points plotter.XYs
	for _, e := range found {
		points = append(points, plotter.XY{X: e.X, Y: height})
	}
	return points
}

func retransmits(s *Sample) int { return s.Retransmits }
func timeouts(s *Sample) int    { return s.Timeouts }
func tailProbes(s *Sample) int  { return s.TailProbes }

// outstanding replaces what is in flight when an acknowledgment comes, and lets more be sent, by
// what is unacknowledged from then to the next one: what was sent by then.
func outstanding(samples []Sample) []Sample {
	changed := slices.Clone(samples)
	for i := range len(changed) - 1 {
		changed[i].InFlight = max(0, changed[i+1].Sent-changed[i].Acked)
	}
	return changed
}

func windowPanel(samples []Sample, t timeline, columns int) panel {
	samples = outstanding(samples)
	most := greatest(samples, func(s *Sample) float64 { return max(s.Cwnd, s.InFlight) })
	unit, size := byteUnit(most)
	top := 1.15 * max(most/size, 1)
	at := func(s *Sample) plotter.XY { return plotter.XY{X: t.x(s)} }
	in := func(value func(*Sample) float64) func(*Sample) float64 {
		return func(s *Sample) float64 { return value(s) / size }
	}
	return panel{
		title: "window", label: "window, " + unit, top: top,
		curves: []curve{
			{name: "unacked", color: sky, pieces: t.series(samples, columns,
				in(func(s *Sample) float64 { return s.InFlight }))},
			// Before the first loss ssthresh is arbitrarily high (RFC 5681 §3.1).
			{name: "ssthresh", color: orange, dashed: true, pieces: t.series(samples, columns,
				func(s *Sample) float64 { return within(s.Ssthresh/size, top) })},
			{name: "cwnd", color: blue, pieces: t.series(samples, columns,
				in(func(s *Sample) float64 { return s.Cwnd }))},
		},
		marks: []marks{
			{
				name: "RTO", color: vermillion, shape: draw.PyramidGlyph{},
				points: atTop(events(samples, columns/8, timeouts, at), 0.95*top),
			},
			{
				name: "TLP", color: green, shape: draw.RingGlyph{},
				points: atTop(events(samples, columns/8, tailProbes, at), 0.88*top),
			},
		},
	}
}

func rttPanel(samples []Sample, t timeline, columns int) panel {
	ms := func(value func(*Sample) float64) func(*Sample) float64 {
		return func(s *Sample) float64 { return value(s) / 1e6 }
	}
	smoothed := ms(func(s *Sample) float64 { return float64(s.RTT) })
	least := ms(func(s *Sample) float64 { return float64(s.MinRTT) })
	measured := func(value func(*Sample) float64) func(*Sample) float64 {
		return func(s *Sample) float64 { return within(value(s), math.Inf(1)) }
	}
	top := 1.15 * greatest(samples, smoothed)
	if top == 0 {
		top = 1
	}
	return panel{
		title: "round-trip time", label: "RTT, ms", top: top,
		curves: []curve{
			{
				name: "smoothed", color: blue,
				pieces: t.series(samples, columns, measured(smoothed)),
			},
			{
				name: "least", color: green, dashed: true,
				pieces: t.series(samples, columns, measured(least)),
			},
		},
		marks: []marks{{name: "RTO", color: vermillion, shape: draw.PyramidGlyph{}, points: atTop(
			events(samples, columns/8, timeouts,
				func(s *Sample) plotter.XY { return plotter.XY{X: t.x(s)} }), 0.95*top)}},
	}
}

func sequencePanel(samples []Sample, t timeline, columns int) panel {
	base, last := samples[0].Acked, &samples[len(samples)-1]
	if base < 0.02*last.Acked {
		base = 0
	}
	unit, size := byteUnit(last.Sent - base)
	top := 1.08 * max((last.Sent-base)/size, 1/size)
	label := "sequence, " + unit
	if base > 0 {
		whole, wholeSize := byteUnit(base)
		label = fmt.Sprintf("sequence − %.4g %s, %s", base/wholeSize, whole, unit)
	}
	acked := func(s *Sample) float64 { return (s.Acked - base) / size }
	at := func(s *Sample) plotter.XY { return plotter.XY{X: t.x(s), Y: acked(s)} }
	p := panel{
		title: "sequence", label: label, top: top,
		curves: []curve{
			{name: "sent", color: sky, pieces: t.series(samples, columns,
				func(s *Sample) float64 { return (s.Sent - base) / size })},
			{
				name: "acknowledged", color: blue,
				pieces: t.series(samples, columns, acked),
			},
		},
		marks: []marks{{
			name: "RTO", color: vermillion, shape: draw.PyramidGlyph{},
			points: atCurve(events(samples, columns/8, timeouts, at)),
		}},
	}
	p.bars = retransmitBars(events(samples, columns, retransmits, at), t, columns, top/4)
	return p
}

func atCurve(found []event) plotter.XYs {
	var points plotter.XYs
	for _, e := range found {
		points = append(points, plotter.XY{X: e.X, Y: e.Y})
	}
	return points
}

// retransmitBars are the retransmissions of each column, the highest as high as height.
func retransmitBars(found []event, t timeline, columns int, height float64) bars {
	most := 0
	for _, e := range found {
		most = max(most, e.Count)
	}
	b := bars{color: vermillion, name: "sent again"}
	if most > 1 {
		width := (t.end - t.start) / t.factor / float64(columns)
		b.scale = fmt.Sprintf(", up to %d in %.2g ms", most, 1e3*width)
	}
	for _, e := range found {
		share := float64(e.Count) / float64(most)
		b.points = append(b.points, plotter.XY{X: e.X, Y: height * share})
	}
	return b
}
