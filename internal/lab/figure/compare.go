package figure

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// These are the tints of a flow's color for its first and its second run.
const (
	virtualTint = 0.25
	realTint    = -0.55
)

// CompareRuns returns figures that compare two runs of one experiment, such as one in virtual time
// and one in real time. Each figure shows the curves of both. names describes the two runs.
func CompareRuns(virtual, live *result.Record, names [2]string) []Plot {
	p := newPair(virtual, live)
	p.names = names
	var plots []Plot
	for _, draw := range []func() (Plot, bool){p.windows, p.roundTrips, p.rates} {
		if plot, ok := draw(); ok {
			plot.chart.Alt = plot.Title + ". " + plot.Caption
			plots = append(plots, plot)
		}
	}
	return plots
}

// pair is two runs of one experiment.
type pair struct {
	names         [2]string
	virtual, live *view
	flows         int // number of flows to draw
}

func newPair(virtual, live *result.Record) *pair {
	p := &pair{virtual: newView(virtual), live: newView(live)}
	p.flows = min(len(p.virtual.flows), len(p.live.flows), maxPanels)
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

func (p *pair) panels(label string, u result.Scale, curve func(v *view, f *flow) []chart.Point,
) []chart.Panel {
	var list []chart.Panel
	for i := range p.flows {
		f, g := &p.virtual.flows[i], &p.live.flows[i]
		panel := chart.Panel{
			X: p.virtual.time(), Y: axis(label, u, 0, 0),
			Layers: []chart.Layer{
				{
					Name: p.names[0], Kind: chart.Steps, Paint: f.paint, Width: 1.7,
					Points: curve(p.virtual, f),
				},
				{
					Name: p.names[1], Kind: chart.Steps, Paint: g.paint, Width: 0.8,
					Points: curve(p.live, g),
				},
			},
		}
		if p.flows > 1 {
			panel.Title = f.title()
		}
		for _, l := range panel.Layers {
			panel.Y.Max = max(panel.Y.Max, 1.06*maxY(l.Points))
		}
		if panel.Y.Max > 0 {
			list = append(list, panel)
		}
	}
	shareScale(list)
	return list
}

func (p *pair) plot(name, title, caption string, panels []chart.Panel) (Plot, bool) {
	if len(panels) == 0 {
		return Plot{}, false
	}
	if n := len(p.virtual.flows); n > p.flows {
		caption += fmt.Sprintf(" The first %d of %d flows are drawn.", p.flows, n)
	}
	return Plot{
		Name: name, Title: title, Caption: caption,
		chart: p.virtual.stacked(panels, heightOf(len(panels))),
	}, true
}

func (p *pair) titled(what string) string {
	return what + ", " + p.names[0] + " and " + p.names[1]
}

func (p *pair) windows() (Plot, bool) {
	greatest, mss := 0.0, 0
	for i := range p.flows {
		greatest = max(greatest, maxY(p.virtual.flows[i].windows(1)))
		mss = max(mss, p.virtual.flows[i].MSS)
	}
	u := result.ScaleOf("bytes", greatest)
	if mss > 0 {
		u = result.Scale{Name: "segments", Size: float64(mss)}
	}
	panels := p.panels("cwnd", u, func(_ *view, f *flow) []chart.Point { return f.windows(1) })
	return p.plot("cwnd", p.titled("Congestion window"),
		"The congestion window at each change.", panels)
}

func (p *pair) roundTrips() (Plot, bool) {
	smooth := func(_ *view, f *flow) []chart.Point {
		return points(f.Samples, sampleTime, func(s *result.Sample) float64 {
			return s.SRTT.Seconds()
		})
	}
	greatest := 0.0
	for i := range p.flows {
		greatest = max(greatest, maxY(smooth(nil, &p.virtual.flows[i])),
			maxY(smooth(nil, &p.live.flows[i])))
	}
	panels := p.panels("smoothed RTT", result.ScaleOf("s", greatest), smooth)
	return p.plot("rtt", p.titled("Round-trip time"),
		"The sender's smoothed round-trip time.", panels)
}

func (p *pair) rates() (Plot, bool) {
	width := binWidth(p.virtual)
	rate := func(v *view, f *flow) []chart.Point {
		if len(f.Progress) == 0 {
			return nil
		}
		b := v.progress(f, width)
		return b.blocks(b.rates(), nil)
	}
	greatest := 0.0
	for i := range p.flows {
		greatest = max(greatest, maxY(rate(p.virtual, &p.virtual.flows[i])))
	}
	panels := p.panels("goodput", result.ScaleOf("bit/s", greatest), rate)
	return p.plot("throughput", p.titled("Goodput"), fmt.Sprintf(
		"Goodput of the receiving application, averaged over %s.", plain(width, "s")), panels)
}
