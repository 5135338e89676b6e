package figure

import (
	"fmt"
	"math"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// windowPlots are the congestion windows of the flows over time: panels of their own for a few,
// one for many.
func windowPlots(v *view) []Plot {
	var flows []*flow
	for i := range v.flows {
		if f := &v.flows[i]; most(f.windows(1)) > 0 {
			flows = append(flows, f)
		}
	}
	p := Plot{Name: "cwnd", Title: "Congestion window"}
	switch {
	case len(flows) == 0:
		return nil
	case len(flows) > mostPanels:
		p.chart = v.crowdedWindows(flows[:min(len(flows), mostCurves)])
		p.Caption = fmt.Sprintf("The congestion windows of %d flows, in segments, each as its "+
			"sender changed it.", min(len(flows), mostCurves))
		return []Plot{p}
	}
	var panels []chart.Panel
	for _, f := range flows {
		panels = append(panels, v.windowPanel(f))
	}
	alike(panels)
	p.chart = v.stacked(panels, heightOf(len(panels)))
	p.Caption = "The congestion window (cwnd) and the slow-start threshold (ssthresh) at each " +
		"change that the sender made" + flows[0].segmentText() + "."
	if capacity, limit := v.bottleneck(flows[0]); capacity > 0 && v.baseRTT(flows[0]) > 0 {
		p.Caption += " BDP is what the path holds without a queue"
		if limit > 0 {
			p.Caption += fmt.Sprintf(", Q what the bottleneck's queue holds on top of it (%s)",
				amount(limit, "bytes"))
		}
		p.Caption += ", both for one flow alone."
	}
	p.Caption += " Ticks beneath: what happened when."
	return []Plot{p}
}

// segment is how many bytes the unit of the flow's windows has, and its name.
func (f *flow) segment(mostBytes float64) unit {
	if f.MSS > 0 {
		return unit{"segments", float64(f.MSS)}
	}
	return byteScale(mostBytes)
}

func (f *flow) segmentText() string {
	if f.MSS <= 0 {
		return ""
	}
	return fmt.Sprintf(", in segments of %d bytes", f.MSS)
}

// windows is the congestion window over time, in parts of size.
func (f *flow) windows(size float64) []chart.Point {
	return points(f.Samples, sampleTime, func(s *result.Sample) float64 {
		return max(0, float64(s.Cwnd)) / size
	})
}

func (v *view) windowPanel(f *flow) chart.Panel {
	u := f.segment(most(f.windows(1)))
	cwnd := f.windows(u.size)
	top := most(cwnd)
	rules := v.windowRules(f, u, top)
	for _, r := range rules {
		top = max(top, r.Value)
	}
	top *= 1.06
	// Before the first loss ssthresh is arbitrarily high (RFC 5681 §3.1).
	ssthresh := points(f.Samples, sampleTime, func(s *result.Sample) float64 {
		if y := u.of(float64(s.Ssthresh)); y > 0 && y <= top {
			return y
		}
		return math.NaN()
	})
	p := chart.Panel{
		Title: f.title(),
		X:     v.time(),
		Y:     chart.Axis{Label: "window, " + u.name, Max: top},
		Rules: rules, Strips: v.strips(f),
	}
	p.Layers = []chart.Layer{{Name: "cwnd", Kind: chart.Steps, Paint: f.paint, Points: cwnd}}
	if shown(ssthresh) {
		p.Layers = append(p.Layers, chart.Layer{
			Name: "ssthresh", Kind: chart.Steps, Paint: chart.Soft, Width: 0.8, Dash: true,
			Points: ssthresh,
		})
	}
	return p
}

// windowRules are the windows at which the path is full and at which it overflows, as far as the
// picture reaches: the path counts whole packets, a window what they carry.
func (v *view) windowRules(f *flow, u unit, top float64) []chart.Rule {
	capacity, limit := v.bottleneck(f)
	bdp := capacity * v.baseRTT(f)
	if !(bdp > 0) {
		return nil
	}
	payload := f.payload()
	var rules []chart.Rule
	if at := u.of(bdp * payload); at <= 2*top {
		rules = append(rules, chart.Rule{Value: at, Text: "BDP", Paint: chart.Soft})
	}
	if at := u.of((bdp + limit) * payload); limit > 0 && at <= 2*top {
		rules = append(rules, chart.Rule{Value: at, Text: "BDP + Q", Paint: chart.Soft})
	}
	return rules
}

func (v *view) crowdedWindows(flows []*flow) chart.Figure {
	p := chart.Panel{X: v.time(), Y: chart.Axis{Label: "cwnd, segments"}}
	for _, f := range flows {
		l := chart.Layer{
			Name: f.title(), Kind: chart.Steps, Paint: f.paint, Width: 0.8,
			Points: f.windows(float64(max(f.MSS, 1))),
		}
		p.Y.Max = max(p.Y.Max, 1.06*most(l.Points))
		p.Layers = append(p.Layers, l)
	}
	return v.stacked([]chart.Panel{p}, heightOf(1))
}
