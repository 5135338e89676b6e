package figure

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// detailRoundTrips is the length of the detail. detailSamples is the detail's minimum number of
// samples, because a round trip at the start of a slow path may have only one.
const (
	detailRoundTrips = 120
	detailSamples    = 40
)

// middle returns the samples of a few round trips in the middle of the transfer.
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

// timeline is the horizontal axis of a stretch of time: its unit, and its limits, counted from the
// first sample of the transfer.
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

func (t timeline) length() string { return fmt.Sprintf("%.3g %s", t.end-t.start, t.unit) }

func (t timeline) x(s *Sample) float64 { return (s.Seconds - t.origin) * t.factor }

// within returns a value that is above zero and at most limit, and NaN for other values.
func within(y, limit float64) float64 {
	if y > 0 && y <= limit {
		return y
	}
	return math.NaN()
}

func greatest(samples []Sample, value func(*Sample) float64) float64 {
	most := 0.0
	for i := range samples {
		most = max(most, value(&samples[i]))
	}
	return most
}

// outstanding replaces the data in flight at each acknowledgment by its maximum until the next
// acknowledgment, which includes the data sent in between.
func outstanding(samples []Sample) []Sample {
	changed := slices.Clone(samples)
	for i := range len(changed) - 1 {
		changed[i].InFlight = max(0, changed[i+1].Sent-changed[i].Acked)
	}
	return changed
}

func (t timeline) strips(samples []Sample, names ...string) []chart.Strip {
	counters := map[string]func(*Sample) int{
		"RTO":           func(s *Sample) int { return s.Timeouts },
		"TLP":           func(s *Sample) int { return s.TailProbes },
		"retransmitted": func(s *Sample) int { return s.Retransmits },
	}
	var list []chart.Strip
	for _, name := range names {
		if at := growth(samples, t.x, counters[name]); len(at) > 0 {
			list = append(list, chart.Strip{Name: name, Paint: events[name], At: at})
		}
	}
	return list
}

func (t timeline) panel(label string, low, high float64) chart.Panel {
	return chart.Panel{
		X: chart.Axis{Label: "time, " + t.unit, Min: t.start, Max: t.end},
		Y: chart.Axis{Label: label, Min: low, Max: high},
	}
}

// steps returns a layer that draws a value of the samples as a stepped line.
func (t timeline) steps(
	name string, paint chart.Paint, samples []Sample, value func(*Sample) float64,
) chart.Layer {
	return chart.Layer{
		Name: name, Kind: chart.Steps, Paint: paint, Width: 0.8,
		Points: points(samples, t.x, value),
	}
}

func transferWindow(samples []Sample, t timeline) chart.Panel {
	samples = outstanding(samples)
	largest := greatest(samples, func(s *Sample) float64 { return max(s.Cwnd, s.InFlight) })
	u := result.ScaleOf("bytes", largest)
	top := 1.08 * max(u.Of(largest), 1)
	p := t.panel("window, "+u.Name, 0, top)
	p.Layers = []chart.Layer{
		t.steps("unacked", chart.Sky, samples, func(s *Sample) float64 { return u.Of(s.InFlight) }),
		// Before the first loss, ssthresh is arbitrarily high (RFC 5681 §3.1).
		t.steps("ssthresh", chart.Orange, samples, func(s *Sample) float64 {
			return within(u.Of(s.Ssthresh), top)
		}),
		t.steps("cwnd", chart.Blue, samples, func(s *Sample) float64 { return u.Of(s.Cwnd) }),
	}
	p.Layers[1].Dash = true
	p.Strips = t.strips(samples, "RTO", "TLP")
	_, falls := meanOver(p.Layers[2].Points, t.end)
	if _, gaps := meanOver(p.Layers[0].Points, t.end); max(falls, gaps) > manyTeeth {
		p.Layers = enveloped(p.Layers, p.X, "cwnd")
		p.Y.Max = 1.08 * max(most(p.Layers[0].Points), u.Of(1))
	}
	return p
}

func transferRTT(samples []Sample, t timeline) chart.Panel {
	most := greatest(samples, func(s *Sample) float64 { return s.RTT.Seconds() })
	u := result.ScaleOf("s", most)
	p := t.panel("RTT, "+u.Name, 0, 1.08*max(u.Of(most), u.Of(1e-6)))
	p.Layers = []chart.Layer{
		t.steps("smoothed", chart.Blue, samples, func(s *Sample) float64 {
			return u.Of(within(s.RTT.Seconds(), math.Inf(1)))
		}),
		t.steps("minimum", chart.Green, samples, func(s *Sample) float64 {
			return u.Of(within(s.MinRTT.Seconds(), math.Inf(1)))
		}),
	}
	p.Layers[1].Dash = true
	p.Strips = t.strips(samples, "RTO")
	return p
}

func transferSequence(samples []Sample, t timeline) chart.Panel {
	first, last := samples[0].Acked, samples[len(samples)-1].Sent
	u := result.ScaleOf("bytes", last)
	span := max(u.Of(last-first), u.Of(1))
	p := t.panel("sequence, "+u.Name, max(0, u.Of(first)-0.03*span), u.Of(first)+1.06*span)
	p.Layers = []chart.Layer{
		t.steps("sent", chart.Sky, samples, func(s *Sample) float64 { return u.Of(s.Sent) }),
		t.steps("acknowledged", chart.Blue, samples, func(s *Sample) float64 {
			return u.Of(s.Acked)
		}),
	}
	p.Layers[0].Width = 0.9
	p.Strips = t.strips(samples, "retransmitted", "RTO")
	return p
}
