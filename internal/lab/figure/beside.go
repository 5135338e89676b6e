package figure

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// The tints that make of a flow's colour those of what is virtual and of what is real.
const (
	virtualTint = 0.25
	realTint    = -0.55
)

// Beside are the figures of a run in virtual time and of the same run in real time, of which each
// has the curves of both.
func Beside(virtual, live *result.Record) []Plot {
	p := newPair(virtual, live)
	var plots []Plot
	for _, draw := range []func() (Plot, bool){p.windows, p.roundTrips, p.rates} {
		if plot, ok := draw(); ok {
			plot.chart.Alt = plot.Title + ". " + plot.Caption
			plots = append(plots, plot)
		}
	}
	return plots
}

// pair is a run in virtual time and the same in real time, of as many flows.
type pair struct {
	virtual, live *view
	flows         int
}

func newPair(virtual, live *result.Record) *pair {
	p := &pair{virtual: newView(virtual), live: newView(live)}
	p.flows = min(len(p.virtual.flows), len(p.live.flows), mostPanels)
	p.virtual.end = max(p.virtual.end, p.live.end)
	p.live.end = p.virtual.end
	for i := range p.live.flows {
		f := &p.live.flows[i]
		f.paint = f.paint.Tint(realTint)
		if i < len(p.virtual.flows) {
			f.paint = p.virtual.flows[i].paint.Tint(realTint)
		}
	}
	for i := range p.virtual.flows {
		f := &p.virtual.flows[i]
		f.paint = f.paint.Tint(virtualTint)
	}
	return p
}

// panels are one for each flow, with a curve of both.
func (p *pair) panels(label string, u unit, curve func(v *view, f *flow) []chart.Point,
) []chart.Panel {
	var list []chart.Panel
	for i := range p.flows {
		f, g := &p.virtual.flows[i], &p.live.flows[i]
		panel := chart.Panel{
			X: p.virtual.time(), Y: chart.Axis{Label: joined(label, u.name)},
			Layers: []chart.Layer{
				{
					Name: "virtual", Kind: chart.Steps, Paint: f.paint, Width: 1.7,
					Points: scaledPoints(curve(p.virtual, f), u),
				},
				{
					Name: "real", Kind: chart.Steps, Paint: g.paint, Width: 0.8,
					Points: scaledPoints(curve(p.live, g), u),
				},
			},
		}
		if p.flows > 1 {
			panel.Title = f.title()
		}
		for _, l := range panel.Layers {
			panel.Y.Max = max(panel.Y.Max, 1.06*most(l.Points))
		}
		if panel.Y.Max > 0 {
			list = append(list, panel)
		}
	}
	alike(list)
	return list
}

// scaledPoints are points in a unit.
func scaledPoints(points []chart.Point, u unit) []chart.Point {
	for i := range points {
		points[i].Y = u.of(points[i].Y)
	}
	return points
}

// plot is a figure of panels; false: there are none.
func (p *pair) plot(name, title, caption string, panels []chart.Panel) (Plot, bool) {
	if len(panels) == 0 {
		return Plot{}, false
	}
	if n := len(p.virtual.flows); n > p.flows {
		caption += fmt.Sprintf(" Of the first %d of %d flows.", p.flows, n)
	}
	return Plot{
		Name: name, Title: title, Caption: caption,
		chart: p.virtual.stacked(panels, heightOf(len(panels))),
	}, true
}

func (p *pair) windows() (Plot, bool) {
	greatest, mss := 0.0, 0
	for i := range p.flows {
		greatest = max(greatest, most(p.virtual.flows[i].windows(1)))
		mss = max(mss, p.virtual.flows[i].MSS)
	}
	u := byteScale(greatest)
	if mss > 0 {
		u = unit{"segments", float64(mss)}
	}
	panels := p.panels("cwnd", u, func(_ *view, f *flow) []chart.Point { return f.windows(1) })
	return p.plot("cwnd", "Congestion window, virtual and real", "The congestion window at each "+
		"change that the sender made, in virtual time and in real time.", panels)
}

func (p *pair) roundTrips() (Plot, bool) {
	smooth := func(_ *view, f *flow) []chart.Point {
		return points(f.Samples, sampleTime, func(s *result.Sample) float64 {
			return s.SRTT.Seconds()
		})
	}
	greatest := 0.0
	for i := range p.flows {
		greatest = max(greatest, most(smooth(nil, &p.virtual.flows[i])),
			most(smooth(nil, &p.live.flows[i])))
	}
	panels := p.panels("smoothed RTT", spanScale(greatest), smooth)
	return p.plot("rtt", "Round-trip time, virtual and real",
		"The round trip as the sender had smoothed it.", panels)
}

func (p *pair) rates() (Plot, bool) {
	width := binWidth(p.virtual)
	rate := func(v *view, f *flow) []chart.Point {
		if len(f.Progress) == 0 {
			return nil
		}
		b := v.progress(f, width)
		return b.blocks(b.rates(), nil, unit{"", 1})
	}
	greatest := 0.0
	for i := range p.flows {
		greatest = max(greatest, most(rate(p.virtual, &p.virtual.flows[i])))
	}
	panels := p.panels("goodput", rateScale(greatest), rate)
	return p.plot("throughput", "Goodput, virtual and real", fmt.Sprintf(
		"What the receiving application got, in steps of %s.", plain(width, "s")), panels)
}
