package figure

import (
	"fmt"
	"math"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// fairnessPlots show how the flows share the link: Jain's index over time and, for two flows, the
// rate of one against the rate of the other.
func fairnessPlots(v *view) []Plot {
	flows := v.pick(progressed)
	if len(flows) < 2 {
		return nil
	}
	width := 2 * binWidth(v)
	rates := make([][]float64, len(flows))
	for i, f := range flows {
		rates[i] = v.progress(f, width).rates()
	}
	jain := v.jainOver(flows, rates, width)
	if !shown(jain) {
		return nil
	}
	p := Plot{Name: "fairness", Title: "Fairness"}
	if mean, _ := meanOver(jain, v.end); !infinite(mean) {
		p.Finding = "Jain's index is " + digits(mean) + " on average over time"
	}
	p.Caption = fmt.Sprintf("Jain's index of the receiving applications' goodput in steps of "+
		"%s, over the flows that had begun: 1 is fair; at 1/%d, one flow has "+
		"everything.", plain(width, "s"), len(flows))
	over := chart.Panel{
		X: v.time(), Y: chart.Axis{Label: "Jain's index", Max: 1.02}, Share: 1.75,
		Moments: v.moments(),
		Layers:  []chart.Layer{{Kind: chart.Steps, Paint: chart.Ink, Width: 0.9, Points: jain}},
		Rules: []chart.Rule{
			{Value: 1, Text: "fair", Paint: chart.Soft},
			{Value: 1 / float64(len(flows)), Text: "one flow has all", Paint: chart.Soft},
		},
	}
	row := chart.Row{Height: 150, Panels: []chart.Panel{over}}
	if len(flows) == 2 {
		row.Panels = append(row.Panels, v.phasePanel(flows, rates, width))
		p.Caption += " Right: the rate of one flow against that of the other, from pale (start) " +
			"to dark (end). On the diagonal both have the same rate; on the other line they " +
			"fill the link."
	}
	p.chart = chart.Figure{Rows: []chart.Row{row}}
	return []Plot{p}
}

// jainOver returns Jain's index of each step. Steps with fewer than two active flows are gaps.
func (v *view) jainOver(flows []*flow, rates [][]float64, width float64) []chart.Point {
	var list []chart.Point
	for i := range rates[0] {
		var shares []float64
		sum := 0.0
		for j, f := range flows {
			if at := float64(i) * width; f.Start.Seconds() <= at && at < v.over(f) {
				shares = append(shares, rates[j][i])
				sum += rates[j][i]
			}
		}
		p := chart.Point{X: float64(i) * width, Y: math.NaN()}
		if len(shares) > 1 && sum > 0 {
			p.Y = result.JainIndex(shares)
		}
		list = append(list, p)
	}
	return lasting(list, v.end)
}

// over returns the time at which a flow had all its data, in seconds, or the end of the run.
func (v *view) over(f *flow) float64 {
	if n := len(f.Samples); n == 0 || f.Samples[n-1].Unacked > 0 {
		return v.end
	}
	return f.Progress[len(f.Progress)-1].At.Seconds()
}

// phasePanel shows the rate of one flow against the rate of the other.
func (v *view) phasePanel(flows []*flow, rates [][]float64, width float64) chart.Panel {
	capacity, _ := v.bottleneck(flows[0])
	capacity *= 8 * flows[0].payload()
	if flows[0].link != nil && flows[0].link != flows[1].link {
		capacity = 0
	}
	greatest := capacity
	var path []chart.Point // path during the time in which both flows are active
	for i := range rates[0] {
		at := float64(i) * width
		if at < max(flows[0].Start, flows[1].Start).Seconds() ||
			at >= min(v.over(flows[0]), v.over(flows[1])) {
			continue
		}
		p := chart.Point{X: rates[0][i], Y: rates[1][i]}
		greatest = max(greatest, p.X, p.Y)
		path = append(path, p)
	}
	u, top := result.ScaleOf("bit/s", greatest), 1.05*greatest
	p := chart.Panel{
		X: axis(flows[0].title(), u, 0, top), Y: axis(flows[1].title(), u, 0, top),
		Layers: []chart.Layer{{
			Kind: chart.Line, Paint: chart.Soft, Width: 0.8, Dash: true,
			Points: []chart.Point{{}, {X: top, Y: top}},
		}},
		Names: []chart.Name{{X: 0.92 * top, Y: 0.92 * top, Text: "fair", Paint: chart.Soft}},
	}
	if capacity > 0 {
		p.Layers = append(p.Layers, chart.Layer{
			Kind: chart.Line, Paint: chart.Soft, Width: 0.8,
			Points: []chart.Point{{Y: capacity}, {X: capacity}},
		})
		p.Names = append(p.Names, chart.Name{
			X: 0.88 * capacity, Y: 0.12 * capacity, Text: "full", Paint: chart.Soft,
		})
	}
	p.Layers = append(p.Layers, chart.Layer{
		Kind: chart.Line, Paint: chart.Faint, Width: 0.6, Points: path,
	})
	for i, tint := range [...]float64{0.7, 0.35, 0} {
		part := path[len(path)*i/3 : len(path)*(i+1)/3]
		p.Layers = append(p.Layers, chart.Layer{
			Kind: chart.Dots, Paint: chart.Blue.Tint(tint), Width: 2.6, Points: part,
		})
	}
	return p
}
