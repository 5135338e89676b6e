package figure

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// flightPlots are what the flows have in flight, beside the windows that limit it.
func flightPlots(v *view) []Plot {
	var panels []chart.Panel
	outside := ""
	for i := range v.flows {
		f := &v.flows[i]
		if len(panels) == mostPanels {
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
	p.Caption = "What the sender thinks is in the network, and the congestion window that limits it"
	if outside == "" {
		p.Caption += ", beside the window that the receiver offers (rwnd)."
	} else {
		p.Caption += "; the window that the receiver offers, " + outside + " at the least, never " +
			"decides."
	}
	alike(panels)
	p.chart = v.stacked(panels, heightOf(len(panels)))
	return []Plot{p}
}

// flightPanel is one flow's. above says how large the receiver's window is if it is far above
// the picture.
func (v *view) flightPanel(f *flow) (p chart.Panel, above string, ok bool) {
	value := func(field func(*result.Sample) int) []chart.Point {
		return points(f.Samples, sampleTime, func(s *result.Sample) float64 {
			return max(0, float64(field(s)))
		})
	}
	flight := value(func(s *result.Sample) int { return s.InFlight })
	cwnd := value(func(s *result.Sample) int { return s.Cwnd })
	offered := value(func(s *result.Sample) int { return s.SendWindow })
	top := max(most(flight), most(cwnd))
	if most(flight) == 0 {
		return p, "", false
	}
	least, near := 0.0, false
	for i, q := range offered {
		if q.Y > 0 && (least == 0 || q.Y < least) {
			least = q.Y
		}
		// It decides, or nearly, in place of the window beside it.
		near = near || q.Y > 0 && cwnd[i].Y > 0 && q.Y < 1.1*cwnd[i].Y
	}
	if near {
		top = max(top, min(most(offered), 1.5*top))
	} else if least > 0 {
		above = amount(least, "bytes")
	}
	u := f.segment(top)
	p = chart.Panel{
		Title: f.title(), X: v.time(),
		Y: chart.Axis{Label: "window, " + u.name, Max: 1.06 * u.of(top)},
		Layers: []chart.Layer{
			{
				Name: "in flight", Kind: chart.Blocks, Paint: f.paint, Opacity: 0.35,
				Points: scale(flight, u),
			},
			{Name: "cwnd", Kind: chart.Steps, Paint: f.paint, Points: scale(cwnd, u)},
		},
		Strips: v.strips(f),
	}
	if near {
		p.Layers = append(p.Layers, chart.Layer{
			Name: "rwnd", Kind: chart.Steps, Paint: chart.Ink, Width: 0.6,
			Points: scale(offered, u),
		})
	}
	if f.MSS > 0 {
		p.Title += fmt.Sprintf(", segments of %d bytes", f.MSS)
	}
	return p, above, true
}
