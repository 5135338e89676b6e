package figure

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// detailRoundTrips is the detail's maximum length. detailSamples is the detail's minimum number of
// samples, because a round trip at the start of a slow path may have only one.
const (
	detailRoundTrips = 120
	detailSamples    = 40
)

// middle returns the samples of up to detailRoundTrips in the middle of the transfer.
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

// timeline is the horizontal axis of some samples. Its times count from origin, the time of the
// transfer's first sample.
type timeline struct {
	origin float64
	axis   chart.Axis
}

func newTimeline(samples []Sample, origin float64) timeline {
	first, last := samples[0].Seconds, samples[len(samples)-1].Seconds
	u := result.Scale{Name: "s", Size: 1}
	if last-first < 0.5 {
		u = result.Scale{Name: "ms", Size: 1e-3}
	}
	if first == last {
		last += u.Size
	}
	return timeline{origin, axis("time", u, first-origin, last-origin)}
}

func (t timeline) length() string {
	_, unit, _ := strings.Cut(t.axis.Label, ", ")
	return fmt.Sprintf("%.3g %s", (t.axis.Max-t.axis.Min)/t.axis.Per, unit)
}

func (t timeline) x(s *Sample) float64 { return s.Seconds - t.origin }

// within returns y if it is above zero and at most limit, and NaN otherwise.
func within(y, limit float64) float64 {
	if y > 0 && y <= limit {
		return y
	}
	return math.NaN()
}

func maxOf(samples []Sample, value func(*Sample) float64) float64 {
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
	largest := maxOf(samples, func(s *Sample) float64 { return max(s.Cwnd, s.InFlight) })
	u := result.ScaleOf("bytes", largest)
	top := 1.08 * max(largest, u.Size)
	p := chart.Panel{X: t.axis, Y: axis("window", u, 0, top)}
	p.Layers = []chart.Layer{
		t.steps("unacked", chart.Sky, samples, func(s *Sample) float64 { return s.InFlight }),
		// Before the first loss, ssthresh is arbitrarily high (RFC 5681 §3.1).
		t.steps("ssthresh", chart.Orange, samples, func(s *Sample) float64 {
			return within(s.Ssthresh, top)
		}),
		t.steps("cwnd", chart.Blue, samples, func(s *Sample) float64 { return s.Cwnd }),
	}
	p.Layers[1].Dash = true
	p.Strips = t.strips(samples, "RTO", "TLP")
	_, falls := meanOver(p.Layers[2].Points, p.X.Max)
	if _, gaps := meanOver(p.Layers[0].Points, p.X.Max); max(falls, gaps) > maxTeeth {
		p.Layers = enveloped(p.Layers, p.X, "cwnd")
		p.Y.Max = 1.08 * max(maxY(p.Layers[0].Points), 1)
	}
	return p
}

func transferRTT(samples []Sample, t timeline) chart.Panel {
	most := maxOf(samples, func(s *Sample) float64 { return s.RTT.Seconds() })
	rtts := axis("RTT", result.ScaleOf("s", most), 0, 1.08*max(most, 1e-6))
	p := chart.Panel{X: t.axis, Y: rtts}
	p.Layers = []chart.Layer{
		t.steps("smoothed", chart.Blue, samples, func(s *Sample) float64 {
			return within(s.RTT.Seconds(), math.Inf(1))
		}),
		t.steps("minimum", chart.Green, samples, func(s *Sample) float64 {
			return within(s.MinRTT.Seconds(), math.Inf(1))
		}),
	}
	p.Layers[1].Dash = true
	p.Strips = t.strips(samples, "RTO")
	return p
}

func transferSequence(samples []Sample, t timeline) chart.Panel {
	first, last := samples[0].Acked, samples[len(samples)-1].Sent
	span := max(last-first, 1)
	p := chart.Panel{X: t.axis, Y: axis("sequence", result.ScaleOf("bytes", last),
		max(0, first-0.03*span), first+1.06*span)}
	p.Layers = []chart.Layer{
		t.steps("sent", chart.Sky, samples, func(s *Sample) float64 { return s.Sent }),
		t.steps("acknowledged", chart.Blue, samples, func(s *Sample) float64 { return s.Acked }),
	}
	p.Layers[0].Width = 0.9
	p.Strips = t.strips(samples, "retransmitted", "RTO")
	return p
}
