package plan

import (
	"math"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// link is one direction of the path in the making.
type link struct {
	netem.Config
	at       *node
	queue    *node
	words    *node
	rateNode *node
	mean     float64 // of the rate, in bits a second; 0: there is none
	unknown  bool    // there is a rate, but nobody knows which
}

// maxDelay is what netem takes.
const maxDelay = time.Hour

// pathKeys are what a path has.
var pathKeys = []key[draft]{
	{"down", "", func(*decoder, *node, *draft) {}}, // wires reads both
	{"up", "", func(*decoder, *node, *draft) {}},
}

// linkKeys are what a direction has. The queue is read last: its limit may be in times of what
// the others say.
var linkKeys = []key[link]{
	{"netem", "", func(_ *decoder, n *node, l *link) { l.words = n }},
	{"delay", "", func(d *decoder, n *node, l *link) {
		d.time(n, "how long the wire is", maxDelay, &l.Delay)
	}},
	{"jitter", "", (*decoder).jitter},
	{"rate", "", (*decoder).linkRate},
	{"trace", "", (*decoder).trace},
	{"overhead", "", func(d *decoder, n *node, l *link) {
		d.size(n, "what each packet costs on top", 0, maxMTU, &l.Overhead)
	}},
	{"queue", "", func(_ *decoder, n *node, l *link) { l.queue = n }},
	{"loss", "", func(d *decoder, n *node, l *link) { l.Loss = d.loss(n) }},
	{"duplicate", "", func(d *decoder, n *node, l *link) {
		d.correlated(n, "what arrives twice", &l.Duplicate, &l.Correlation.Duplicate)
	}},
	{"corrupt", "", (*decoder).corrupt},
	{"truncate", "", func(d *decoder, n *node, l *link) {
		d.share(n, "what loses its end", &l.Truncate)
	}},
	{"reorder", "", (*decoder).reorder},
	{"policer", "", (*decoder).policer},
}

// usualQueue is the queue of a link with a rate of which no more is said.
const usualQueue = "200ms"

// wires reads both directions of the path.
func (d *decoder) wires(root *node, x *draft) {
	down, up := &link{}, &link{}
	switch {
	case x.mahimahi != nil && x.path != nil:
		d.bad(x.mahimahi, "mm and path both say what the path is", "one of them")
		return
	case x.mahimahi != nil:
		d.mahimahi(x.mahimahi, down, up)
	case x.path == nil && root.get("path") != nil: // it is empty, which is reported
		return
	case x.path == nil:
		d.report.add(root.place, "an experiment without a path", "path: {down: {…}} or mm")
		return
	case !fill(d, x.path, "a path", pathKeys, x):
		return
	case x.path.get("down") == nil:
		d.bad(x.path, "a path without down, the way of the data", "down: {delay: 20ms, …}")
		return
	default:
		below := x.path.get("down")
		d.direction(below, down)
		above := d.above(x.path.get("up"), below)
		d.direction(above, up)
		if way := x.path.get("up"); (way == nil || way.get("delay").plain("same")) &&
			below.get("delay") == nil {
			up.Delay = down.Delay // which netem's words say
		}
	}
	d.unread = down.unknown || up.unknown
	d.rtt = down.Delay + up.Delay
	d.bottleneck = down.mean
	if d.bottleneck == 0 {
		d.bottleneck = up.mean
	}
	d.waiting(down)
	d.waiting(up)
	x.Path.Down, x.Path.Up = down.Config, up.Config
}

// direction reads one way.
func (d *decoder) direction(n *node, l *link) {
	l.at = n
	if n.kind == scalar && !n.empty() { // all of it is netem's words
		d.netem(n, nil, l)
		return
	}
	if fill(d, n, "a direction of a path", linkKeys, l) && l.words != nil {
		d.netem(l.words, n, l)
	}
}

// idealPath is the way back of which a file says nothing: as long as the way there, and
// nothing else.
func idealPath(p place) *node {
	return &node{place: p, kind: mapping, pairs: []pair{
		{&node{place: p, text: "delay"}, &node{place: p, text: "same"}},
	}}
}

// above puts what is the same as below in its place.
func (d *decoder) above(n, below *node) *node {
	switch {
	case n == nil || n.empty():
		n = idealPath(below.place)
	case n.plain("same"):
		return below
	}
	if n.kind != mapping {
		return n
	}
	out := *n
	out.pairs = nil
	for _, p := range n.pairs {
		if p.value.plain("same") {
			if p.value = below.get(p.key.text); p.value == nil {
				if p.key.text == "delay" || slices.Contains(names(linkKeys), p.key.text) {
					continue // as below: nothing
				}
				p.value = &node{place: p.key.place, text: "same"}
			}
		}
		out.pairs = append(out.pairs, p)
	}
	return &out
}

// linkRate reads the rate: a number, or one that changes with time.
func (d *decoder) linkRate(n *node, l *link) {
	if n.plain("none") {
		return
	}
	l.rateNode = n
	if n.kind == mapping {
		d.schedule(n, l)
	} else if r, ok := d.rate(n, "how fast the link is"); ok {
		l.Rate = netem.BitsPerSecond(r)
	}
	l.mean = d.meanRate(l.Rate)
	l.unknown = l.Rate == nil
}

// serviceTime is how long the bottleneck takes for a packet of the MTU, in nanoseconds.
func (d *decoder) serviceTime() time.Duration {
	if d.bottleneck == 0 {
		return 0
	}
	const bits = 8
	return time.Duration(math.Round(float64(d.mtu*bits) * 1e9 / d.bottleneck))
}
