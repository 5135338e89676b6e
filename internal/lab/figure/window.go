package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// windowPlots show the congestion windows of the flows over time, in separate panels for a few
// flows and in one panel for many.
func windowPlots(v *view) []Plot {
	flows := v.pick(func(f *flow) bool { return maxY(f.windows(1)) > 0 })
	p := Plot{Name: "cwnd", Title: "Congestion window", Finding: v.windowFinding(flows)}
	switch {
	case len(flows) == 0:
		return nil
	case len(flows) > maxPanels:
		drawn := drawnFlows(flows)
		p.chart = v.manyWindows(drawn)
		p.Caption = fmt.Sprintf("The congestion windows of %d flows, in segments, at each "+
			"change.", len(flows)) + manyFlowsText(len(flows), len(drawn))
		return []Plot{p}
	}
	var panels []chart.Panel
	for _, f := range flows {
		panels = append(panels, v.windowPanel(f))
	}
	shareScale(panels)
	p.chart = v.stacked(panels, heightOf(len(panels)))
	detailed := v.addTeeth(&p, flows)
	p.Caption = "The congestion window (cwnd) and the slow-start threshold (ssthresh) at each " +
		"change" + flows[0].segmentText() + "."
	if capacity, limit := v.bottleneck(flows[0]); capacity > 0 && v.baseRTT(flows[0]) > 0 {
		p.Caption += " BDP is the bandwidth-delay product"
		if limit > 0 {
			p.Caption += fmt.Sprintf(", Q the size of the bottleneck's queue (%s)",
				plain(limit, "bytes"))
		}
		p.Caption += ", both for a single flow."
	}
	p.Caption += " Ticks below the axis are events."
	if detailed {
		p.Caption += " Left: the range and the mean; right: a detail."
	}
	return []Plot{p}
}

// A tooth of the window's sawtooth ends when the window falls. A curve with more than maxTeeth is
// illegible, so the figure then has a detail with about detailTeeth.
const maxTeeth, detailTeeth = 60, 15

// addTeeth adds a detail to the right of each panel if some windows have too many teeth.
func (v *view) addTeeth(p *Plot, flows []*flow) bool {
	most := 0
	for _, f := range flows {
		_, falls := meanOver(f.windows(1), v.end)
		most = max(most, falls)
	}
	if most <= maxTeeth {
		return false
	}
	span := v.end * detailTeeth / float64(most)
	from := max(0, v.end/2-span/2)
	for i := range p.chart.Rows {
		row := &p.chart.Rows[i]
		whole := &row.Panels[0]
		whole.Share = 1.6
		part := *whole
		part.Title, part.Share, part.Moments = "", 1, nil
		part.X = timeAxis(from, from+span)
		part.X.Bare = whole.X.Bare
		part.Y.Label = ""
		part.Layers = slices.Clone(whole.Layers)
		for j := range part.Layers {
			part.Layers[j].Name = ""
		}
		whole.Layers = enveloped(whole.Layers, whole.X, "cwnd")
		part.Strips = slices.Clone(whole.Strips)
		for j := range part.Strips {
			part.Strips[j].Name = ""
		}
		whole.Rules = slices.Clone(whole.Rules)
		for j := range whole.Rules { // the detail names them
			whole.Rules[j].Text = ""
		}
		row.Panels = []chart.Panel{*whole, part}
	}
	return true
}

// segment returns the unit in which the flow's windows are shown.
func (f *flow) segment(mostBytes float64) result.Scale {
	if f.MSS > 0 {
		return result.Scale{Name: "segments", Size: float64(f.MSS)}
	}
	return result.ScaleOf("bytes", mostBytes)
}

func (f *flow) segmentText() string {
	if f.MSS <= 0 {
		return ""
	}
	return fmt.Sprintf(", in segments of %d bytes", f.MSS)
}

func (f *flow) windows(size float64) []chart.Point {
	return points(f.Samples, sampleTime, func(s *result.Sample) float64 {
		return max(0, float64(s.Cwnd)) / size
	})
}

func (v *view) windowPanel(f *flow) chart.Panel {
	cwnd := f.windows(1)
	top := maxY(cwnd)
	u := f.segment(top)
	rules := v.windowRules(f, top)
	for _, r := range rules {
		top = max(top, r.Value)
		for _, step := range r.Steps {
			top = max(top, min(step.Y, 1.3*top))
		}
	}
	top *= 1.06
	// Before the first loss, ssthresh is arbitrarily high (RFC 5681 §3.1).
	ssthresh := points(f.Samples, sampleTime, func(s *result.Sample) float64 {
		return within(float64(s.Ssthresh), top)
	})
	p := chart.Panel{
		Title: f.title(),
		X:     v.time(),
		Y:     axis("window", u, 0, top),
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

// windowRules returns the windows at which the path is full and at which it overflows, if they are
// within the range of the picture. The path counts whole packets; a window counts their payload.
func (v *view) windowRules(f *flow, top float64) []chart.Rule {
	capacity, limit := v.bottleneck(f)
	if !(capacity > 0) || v.baseRTT(f) <= 0 {
		return nil
	}
	var rules []chart.Rule
	add := func(name string, queue float64) {
		r := v.level(f, name, func(capacity float64) float64 {
			return (capacity*v.baseRTT(f) + queue) * f.payload()
		})
		if r.Value <= 2*top {
			rules = append(rules, r)
		}
	}
	add("BDP", 0)
	if limit > 0 {
		add("BDP + Q", limit)
	}
	return rules
}

// level returns a rule that depends on the bottleneck's rate in bytes per second, which may change.
func (v *view) level(f *flow, name string, at func(capacity float64) float64) chart.Rule {
	capacity, _ := v.bottleneck(f)
	r := chart.Rule{Text: name, Paint: chart.Soft, Value: at(capacity)}
	if f.link == nil || len(f.link.Rates) < 2 {
		return r
	}
	for _, p := range f.link.Rates {
		if !(p.Value > 0) {
			return r
		}
		r.Value = at(p.Value / 8)
		r.Steps = append(r.Steps, chart.Point{X: p.At.Seconds(), Y: r.Value})
	}
	return r
}

func (v *view) manyWindows(flows []*flow) chart.Figure {
	p := chart.Panel{X: v.time(), Y: chart.Axis{Label: "cwnd, segments"}}
	named := keyed(flows)
	for _, f := range flows {
		l := chart.Layer{
			Kind: chart.Steps, Paint: f.paint, Width: 0.8,
			Points: f.windows(float64(max(f.MSS, 1))),
		}
		if named[f] {
			l.Name = f.title()
		}
		p.Y.Max = max(p.Y.Max, 1.06*maxY(l.Points))
		p.Layers = append(p.Layers, l)
	}
	return v.stacked([]chart.Panel{p}, heightOf(1))
}

func flightPlots(v *view) []Plot {
	var panels []chart.Panel
	outside := ""
	for i := range v.flows {
		f := &v.flows[i]
		if len(panels) == maxPanels {
			break
		}
		if panel, above, ok := v.flightPanel(f); ok {
			panels = append(panels, panel)
			if above != "" && outside == "" {
				outside = above
			}
		}
	}
	if len(panels) == 0 {
		return nil
	}
	p := Plot{Name: "flight", Title: "In flight"}
	p.Caption = "The sender's estimate of the data in flight, and the congestion window that " +
		"limits it"
	if outside == "" {
		p.Caption += ", with the receiver's window (rwnd)."
	} else {
		p.Caption += "; the receiver's window, " + outside + " or more, never limits."
	}
	shareScale(panels)
	p.chart = v.stacked(panels, heightOf(len(panels)))
	return []Plot{p}
}

// flightPanel shows one flow. above is the smallest window that the receiver offered, if none was
// near the congestion window or below it.
func (v *view) flightPanel(f *flow) (p chart.Panel, above string, ok bool) {
	value := func(field func(*result.Sample) int) []chart.Point {
		return points(f.Samples, sampleTime, func(s *result.Sample) float64 {
			return max(0, float64(field(s)))
		})
	}
	flight := value(func(s *result.Sample) int { return s.InFlight })
	cwnd := value(func(s *result.Sample) int { return s.Cwnd })
	offered := value(func(s *result.Sample) int { return s.SendWindow })
	top := max(maxY(flight), maxY(cwnd))
	if maxY(flight) == 0 {
		return p, "", false
	}
	least, near := 0.0, false
	for i, q := range offered {
		if q.Y > 0 && (least == 0 || q.Y < least) {
			least = q.Y
		}
		// The receiver's window limits the sender, or nearly does.
		near = near || q.Y > 0 && cwnd[i].Y > 0 && q.Y < 1.1*cwnd[i].Y
	}
	if near {
		top = max(top, min(maxY(offered), 1.5*top))
	} else if least > 0 {
		above = amount(least, "bytes")
	}
	u := f.segment(top)
	p = chart.Panel{
		Title: f.title(), X: v.time(),
		Y: axis("window", u, 0, 1.06*top),
		Layers: []chart.Layer{
			{
				Name: "in flight", Kind: chart.Blocks, Paint: f.paint, Opacity: 0.35,
				Points: flight,
			},
			{Name: "cwnd", Kind: chart.Steps, Paint: f.paint, Points: cwnd},
		},
		Strips: v.strips(f),
	}
	if near {
		p.Layers = append(p.Layers, chart.Layer{
			Name: "rwnd", Kind: chart.Steps, Paint: chart.Ink, Width: 0.6, Points: offered,
		})
	}
	if f.MSS > 0 {
		p.Title += fmt.Sprintf(", segments of %d bytes", f.MSS)
	}
	return p, above, true
}

// maxOwn limits the panels of the variables that scripts record.
const maxOwn = 8

// ownPlots show the variables that scripts record. Each name of each flow has a panel.
func ownPlots(v *view) []Plot {
	var panels []chart.Panel
	all := 0
	for i := range v.flows {
		f := &v.flows[i]
		for k, name := range f.Own {
			values := points(f.Samples, sampleTime, func(s *result.Sample) float64 {
				if k >= len(s.Own) {
					return math.NaN()
				}
				return s.Own[k]
			})
			if !shown(values) {
				continue
			}
			if all++; len(panels) == maxOwn {
				continue
			}
			low, high := 0.0, 0.0
			for _, p := range values {
				low, high = min(low, orZero(p.Y)), max(high, orZero(p.Y))
			}
			if low == high {
				high = 1
			}
			panels = append(panels, chart.Panel{
				Title: f.title(), X: v.time(),
				Y: chart.Axis{Label: name, Min: 1.06 * low, Max: 1.06 * high},
				Layers: []chart.Layer{{
					Kind: chart.Steps, Paint: f.paint, Width: 0.8, Points: values,
				}},
			})
		}
	}
	if len(panels) == 0 {
		return nil
	}
	p := Plot{Name: "recorded", Title: "Recorded by the congestion control"}
	p.Caption = "The numbers that the Starlark scripts record, at each change."
	if all > len(panels) {
		p.Caption += fmt.Sprintf(" The first %d of %d are drawn.", len(panels), all)
	}
	p.chart = v.stacked(panels, heightOf(len(panels)))
	return []Plot{p}
}

func (v *view) windowFinding(flows []*flow) string {
	if len(flows) > maxNamed {
		return ""
	}
	var parts []string
	for _, f := range flows {
		cwnd := f.windows(1)
		u := f.segment(maxY(cwnd))
		mean, falls := meanOver(cwnd, v.end)
		if infinite(mean) {
			return ""
		}
		average := digits(u.Of(mean)) + " " + u.Name
		if len(flows) > 1 {
			parts = append(parts, f.title()+" has "+average+" on average")
			continue
		}
		parts = append(parts, "mean "+average+", maximum "+digits(u.Of(maxY(cwnd))))
		if falls > 0 {
			parts[0] += ", " + plural(falls, "fall")
		}
	}
	return listed(parts)
}
