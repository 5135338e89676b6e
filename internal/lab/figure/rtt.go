package figure

import (
	"fmt"
	"math"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func rttPlots(v *view) []Plot {
	flows := v.pick(func(f *flow) bool {
		return slices.ContainsFunc(f.Samples, func(s result.Sample) bool { return s.RTT > 0 })
	})
	if len(flows) == 0 {
		return nil
	}
	greatest, least := 0.0, math.Inf(1)
	for _, f := range flows {
		sorted := roundTrips(f)
		greatest, least = max(greatest, sorted[len(sorted)-1]), min(least, sorted[0])
	}
	all := len(flows)
	flows = drawnFlows(flows)
	rules, ruleText := v.rttRules(flows, greatest)
	rtts := axis("round trip", result.ScaleOf("s", greatest), least, greatest)
	for _, r := range rules {
		rtts.Min, rtts.Max = min(rtts.Min, r.Value), max(rtts.Max, r.Value)
		for _, p := range r.Steps {
			rtts.Max = max(rtts.Max, min(p.Y, 1.2*greatest))
		}
	}
	rtts.Min, rtts.Max = widen(rtts.Min, rtts.Max)
	p := Plot{Name: "rtt", Title: "Round-trip time", Finding: rttFinding(flows)}
	p.Caption = "Each round trip that a sender measured (dots), its smoothed RTT (line)" +
		ruleText + ". Right: the distribution function of the samples." +
		manyFlowsText(all, len(flows))
	groups := [][]*flow{flows}
	// Similar round-trip times need separate panels, because one curve would hide the other.
	if len(flows) <= maxPanels {
		groups = groups[:0]
		for i := range flows {
			groups = append(groups, flows[i:i+1])
		}
	}
	for i, group := range groups {
		row := chart.Row{Height: heightOf(len(groups)), Panels: v.rttPanels(group, rtts)}
		row.Panels[0].Rules = rules
		row.Panels[0].X.Bare, row.Panels[1].X.Bare = i < len(groups)-1, i < len(groups)-1
		if i == 0 {
			row.Panels[0].Moments = v.moments()
		}
		if len(flows) == 1 {
			row.Panels[0].Title = ""
		}
		p.chart.Rows = append(p.chart.Rows, row)
	}
	return []Plot{p}
}

// rttPanels show the round-trip times of some flows, over time and as a distribution.
func (v *view) rttPanels(flows []*flow, rtts chart.Axis) []chart.Panel {
	over := chart.Panel{X: v.time(), Y: rtts, Share: 2.3}
	spread := chart.Panel{X: rtts, Y: chart.Axis{Label: "share of samples", Min: 0, Max: 1}}
	if len(flows) == 1 {
		over.Title = flows[0].title()
	}
	var expired []float64
	named := keyed(flows)
	for _, f := range flows {
		layers := v.rttLayers(f, len(flows))
		for i := range layers {
			if !named[f] {
				layers[i].Name = ""
			}
		}
		over.Layers = append(over.Layers, layers...)
		spread.Layers = append(spread.Layers, chart.Layer{
			Kind: chart.Steps, Paint: f.paint, Points: cumulative(roundTrips(f)),
		})
		expired = append(expired, growth(f.Samples, sampleTime, expiries)...)
	}
	if len(expired) > 0 {
		over.Strips = []chart.Strip{{Name: "RTO", Paint: events["RTO"], At: expired}}
	}
	return []chart.Panel{over, spread}
}

// widen adds space around the limits. If zero is near, it extends the lower limit to zero.
func widen(low, high float64) (float64, float64) {
	if low < high/2 {
		return 0, 1.06 * high
	}
	air := max(0.08*(high-low), 0.01*high)
	return max(0, low-air), high + air
}

// rttRules returns the round-trip times without a queue and with a full one.
func (v *view) rttRules(flows []*flow, greatest float64) ([]chart.Rule, string) {
	base := v.baseRTT(flows[0])
	capacity, limit := v.bottleneck(flows[0])
	same := !slices.ContainsFunc(flows, func(f *flow) bool { return v.baseRTT(f) != base })
	if base == 0 || !same {
		return nil, ""
	}
	rules := []chart.Rule{{Value: base, Text: "RTT₀", Paint: chart.Soft}}
	text := fmt.Sprintf(", and the round trip without a queue, RTT₀ = %s", plain(base, "s"))
	if full := base + limit/capacity; capacity > 0 && limit > 0 && full <= 3*greatest {
		r := v.level(flows[0], "RTT₀ + Q/C", func(c float64) float64 { return base + limit/c })
		rules = append(rules, r)
		text += ", and with a full one, RTT₀ + Q/C"
		if len(r.Steps) == 0 {
			text += " = " + amount(full, "s")
		}
	}
	return rules, text
}

// rttLayers draws a flow's samples faintly, and its smoothed RTT.
func (v *view) rttLayers(f *flow, flows int) []chart.Layer {
	var layers []chart.Layer
	samples := points(f.Samples, sampleTime, func(s *result.Sample) float64 {
		return within(s.RTT.Seconds(), math.Inf(1))
	})
	smooth := points(f.Samples, sampleTime, func(s *result.Sample) float64 {
		return within(s.SRTT.Seconds(), math.Inf(1))
	})
	dots := chart.Layer{
		Kind: chart.Dots, Paint: f.paint.Tint(0.3), Width: 1.3, Points: samples,
	}
	line := chart.Layer{
		Name: "SRTT", Kind: chart.Steps, Paint: f.paint, Width: 0.9, Points: smooth,
	}
	if flows == 1 {
		dots.Name = "samples"
		line.Paint, line.Width = f.paint.Tint(-0.55), 0.7
	} else {
		line.Name = f.title()
	}
	if flows <= maxPanels || !shown(smooth) {
		layers = append(layers, dots)
	}
	if shown(smooth) {
		layers = append(layers, line)
	} else {
		layers[0].Name = f.title()
	}
	return layers
}

func roundTrips(f *flow) []float64 {
	var list []float64
	for i := range f.Samples {
		if s := &f.Samples[i]; s.RTT > 0 {
			list = append(list, s.RTT.Seconds())
		}
	}
	slices.Sort(list)
	return list
}

// cumulative returns, for each sorted value, the share of values that are not larger.
func cumulative(sorted []float64) []chart.Point {
	list := make([]chart.Point, 0, len(sorted)+1)
	list = append(list, chart.Point{X: sorted[0]})
	for i, v := range sorted {
		list = append(list, chart.Point{X: v, Y: float64(i+1) / float64(len(sorted))})
	}
	return list
}

func rttFinding(flows []*flow) string {
	if len(flows) > maxNamed {
		return ""
	}
	var parts []string
	for _, f := range flows {
		list := roundTrips(f)
		if len(list) == 0 {
			continue
		}
		if len(flows) == 1 {
			return "half are below " + amount(quantile(list, 0.5), "s") + ", 95 % below " +
				amount(quantile(list, 0.95), "s")
		}
		parts = append(parts, amount(quantile(list, 0.5), "s")+" for "+f.title())
	}
	return "the median is " + listed(parts)
}

func quantile(sorted []float64, share float64) float64 {
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}
