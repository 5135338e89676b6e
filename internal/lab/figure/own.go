package figure

import (
	"fmt"
	"math"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// mostOwn is how many panels of scripts' own numbers are drawn.
const mostOwn = 8

// ownPlots are the numbers that scripts record, a panel for each name of each flow.
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
			if all++; len(panels) == mostOwn {
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
	p.Caption = "The numbers that the Starlark scripts record, each as its script last set it."
	if all > len(panels) {
		p.Caption += fmt.Sprintf(" The first %d of %d are drawn.", len(panels), all)
	}
	p.chart = v.stacked(panels, heightOf(len(panels)))
	return []Plot{p}
}
