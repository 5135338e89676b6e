package figure

import (
	"fmt"
	"slices"

	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

func queuePlots(v *view) []Plot {
	var plots []Plot
	for _, data := range []bool{true, false} { // links that carry data come first
		for i := range v.links {
			if v.carries(&v.links[i]) != data {
				continue
			}
			if p, ok := v.queuePlot(&v.links[i]); ok {
				plots = append(plots, p)
			}
		}
	}
	return plots
}

func (v *view) carries(l *result.LinkRecord) bool {
	return slices.ContainsFunc(v.flows, func(f flow) bool { return f.link == l })
}

// minWait is the share of a round trip below which a queueing delay is not drawn.
const minWait = 0.01

// waited reports whether a figure of a queue is useful: the queue dropped packets, or a packet
// waited longer than the share minWait of a round trip.
func (v *view) waited(q *queue) bool {
	return len(q.drops) > 0 || maxY(q.waits) > minWait*v.RTT.Seconds()
}

type queue struct {
	depth, waits []chart.Point
	drops, marks []float64
	lost         []float64 // packets lost on the link after the queue
}

// lostOnTheWire is the drop reason of packets that the loss model drops, not the queue.
const lostOnTheWire = "loss"

func watch(l *result.LinkRecord) queue {
	q := queue{depth: make([]chart.Point, 0, len(l.Events))}
	for i := range l.Events {
		e := &l.Events[i]
		at := e.At.Seconds()
		switch e.Kind {
		case result.Arrival:
			q.depth = append(q.depth, chart.Point{X: at, Y: float64(max(e.Queued, 0))})
		case result.Departure:
			q.depth = append(q.depth, chart.Point{X: at, Y: float64(max(e.Queued, 0))})
			q.waits = append(q.waits, chart.Point{X: at, Y: max(0, e.Wait.Seconds())})
		case result.Drop:
			if e.Why == lostOnTheWire {
				q.lost = append(q.lost, at)
				continue
			}
			q.drops = append(q.drops, at)
			// A packet dropped on arrival has an arrival event, but was never queued.
			if n := len(q.depth); n > 0 && q.depth[n-1].X == at {
				q.depth[n-1].Y = float64(max(e.Queued, 0))
			}
		case result.Marked:
			q.marks = append(q.marks, at)
		case result.Opportunity:
		}
	}
	return q
}

// queuePlot shows a link's queue, if packets waited in it.
func (v *view) queuePlot(l *result.LinkRecord) (Plot, bool) {
	q := watch(l)
	deepest, longest := maxY(q.depth), maxY(q.waits)
	if deepest == 0 && longest == 0 || !v.waited(&q) {
		return Plot{}, false
	}
	p := Plot{Name: "queue", Title: "Queue of the bottleneck"}
	if l.Name != "down" {
		p.Name = "queue-" + fileName(l.Name)
	}
	if !v.carries(l) {
		p.Title = "Queue of the link " + l.Name + ", the path of the acknowledgments"
	}
	p.Finding = fmt.Sprintf("packets wait at most %s", amount(longest, "s"))
	if n := len(q.drops); n == 0 {
		p.Finding += ", and no packet is dropped"
	}
	layers, how := v.depthLayers(&q)
	p.Caption = "Bytes in the queue" + how +
		", and the queueing delay of each packet that left."
	limit := float64(l.Limit)
	depth := chart.Panel{
		X: v.time(), Y: axis("queue", result.ScaleOf("bytes", deepest), 0, 1.06*deepest),
		Layers: layers,
	}
	if limit > 0 && limit <= 3*deepest {
		depth.Rules = []chart.Rule{{Value: limit, Text: "limit", Paint: chart.Soft}}
		depth.Y.Max = max(depth.Y.Max, 1.06*limit)
	}
	wait := chart.Panel{
		X: v.time(), Y: axis("wait", result.ScaleOf("s", longest), 0, 1.06*longest),
		Layers: []chart.Layer{{Kind: chart.Dots, Paint: chart.Soft, Width: 1, Points: q.waits}},
	}
	var panels []chart.Panel
	if deepest > 0 {
		panels = append(panels, depth)
	}
	if longest > 0 {
		panels = append(panels, wait)
	}
	last := &panels[len(panels)-1]
	if len(q.drops) > 0 {
		last.Strips = append(last.Strips, chart.Strip{
			Name: "dropped", Paint: events["dropped"], At: q.drops,
		})
		p.Caption += " Ticks: dropped packets."
	}
	if len(q.lost) > 0 {
		last.Strips = append(last.Strips, chart.Strip{
			Name: "lost", Paint: chart.Soft, At: q.lost,
		})
		p.Caption += " Ticks of loss: packets lost on the link."
	}
	if len(q.marks) > 0 {
		last.Strips = append(last.Strips, chart.Strip{
			Name: "marked", Paint: chart.Blue, At: q.marks,
		})
	}
	p.chart = v.stacked(panels, 90)
	return p, true
}

// depthBins is the number of steps into which a queue with many changes is divided.
const depthBins = 240

// depthLayers draws a queue's depth. It draws each change or, if the changes would form a black
// area, the mean of each step and a band from the step's minimum to its maximum. how describes
// which of the two it drew.
func (v *view) depthLayers(q *queue) (layers []chart.Layer, how string) {
	if len(q.depth) <= 4*depthBins {
		return []chart.Layer{{
			Kind: chart.Steps, Paint: chart.Soft, Width: 0.7, Points: q.depth,
		}}, ""
	}
	empty := []chart.Point{{}} // until the first packet arrives
	band, mean := envelope(append(empty, q.depth...), 0, v.end, depthBins)
	return []chart.Layer{
		{
			Name: "minimum to maximum", Kind: chart.Blocks, Paint: chart.Gray, Opacity: 0.3,
			Points: band,
		},
		{Name: "mean", Kind: chart.Steps, Paint: chart.Ink, Width: 0.7, Points: mean},
	}, fmt.Sprintf(" (mean, minimum and maximum in steps of %s)", plain(v.end/depthBins, "s"))
}

// fileName converts a name from outside to a part of a file name: letters, digits and dashes.
func fileName(name string) string {
	clean := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			clean = append(clean, c)
		case c >= 'A' && c <= 'Z':
			clean = append(clean, c+'a'-'A')
		case len(clean) > 0 && clean[len(clean)-1] != '-':
			clean = append(clean, '-')
		}
		if len(clean) == 40 {
			break
		}
	}
	if len(clean) == 0 {
		return "x"
	}
	return string(clean)
}
