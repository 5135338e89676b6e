package figure

import (
	"github.com/tidepool-net/tidepool/internal/lab/chart"
	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// queuePlots are the queues of the links over time, and how long packets waited in them.
func queuePlots(v *view) []Plot {
	var plots []Plot
	for i := range v.links {
		if p, ok := v.queuePlot(&v.links[i]); ok {
			plots = append(plots, p)
		}
	}
	return plots
}

// queue is what was seen of a queue.
type queue struct {
	depth, waits []chart.Point
	drops, marks []float64
}

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
			q.drops = append(q.drops, at)
			// What is dropped as it comes was seen to come, but never stood there.
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

// queuePlot is a link's queue. A link in which nothing waited has none.
func (v *view) queuePlot(l *result.LinkRecord) (Plot, bool) {
	q := watch(l)
	deepest, longest := most(q.depth), most(q.waits)
	if deepest == 0 && longest == 0 {
		return Plot{}, false
	}
	p := Plot{Name: "queue", Title: "Queue of the bottleneck"}
	if l.Name != "down" {
		p.Name, p.Title = "queue-"+fileName(l.Name), "Queue of the link "+l.Name
	}
	p.Caption = "What stood in the queue, and how long each packet that left had waited there."
	limit := float64(l.Limit)
	bytes, seconds := byteScale(deepest), spanScale(longest)
	depth := chart.Panel{
		X: v.time(), Y: chart.Axis{Label: "queue, " + bytes.name, Max: 1.06 * bytes.of(deepest)},
		Layers: []chart.Layer{{
			Kind: chart.Steps, Paint: chart.Soft, Width: 0.7, Points: scale(q.depth, bytes),
		}},
	}
	if limit > 0 && limit <= 3*deepest {
		depth.Rules = []chart.Rule{{Value: bytes.of(limit), Text: "limit", Paint: chart.Soft}}
		depth.Y.Max = max(depth.Y.Max, 1.06*bytes.of(limit))
	}
	wait := chart.Panel{
		X: v.time(), Y: chart.Axis{Label: "wait, " + seconds.name, Max: 1.06 * seconds.of(longest)},
		Layers: []chart.Layer{{
			Kind: chart.Dots, Paint: chart.Soft, Width: 1, Points: scale(q.waits, seconds),
		}},
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
			Name: "dropped", Paint: chart.Vermillion, At: q.drops,
		})
		p.Caption += " Ticks: what was dropped."
	}
	if len(q.marks) > 0 {
		last.Strips = append(last.Strips, chart.Strip{
			Name: "marked", Paint: chart.Blue, At: q.marks,
		})
	}
	p.chart = v.stacked(panels, 90)
	return p, true
}

// scale changes the unit of some points.
func scale(list []chart.Point, u unit) []chart.Point {
	for i := range list {
		list[i].Y = u.of(list[i].Y)
	}
	return list
}

// fileName is a name from outside as a part of a file's: letters, digits and dashes.
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
