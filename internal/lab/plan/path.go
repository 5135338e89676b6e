package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

type link struct {
	netem.Config
	at       *node
	queue    *node
	rateNode *node
	mean     float64 // mean rate in bit/s; 0: unlimited
	unknown  bool    // the rate has an error, or its file is not read yet
}

// maxDelay is netem's limit.
const maxDelay = time.Hour

// pathKeys are the keys of a path. readPath reads their values.
var pathKeys = func() []key {
	later := func(*decoder, *node) {}
	return []key{{"down", "", later}, {"up", "", later}}
}()

// keys are the keys of a direction. The arguments of netem are read first, and the queue last,
// because its limit can depend on the other keys.
func (l *link) keys() []key {
	return []key{
		{"netem", "", l.readNetem},
		{"delay", "", readTime("a link's delay", maxDelay, &l.Delay)},
		{"jitter", "", unlessNone(l.readJitter)},
		{"rate", "", unlessNone(l.readRate)},
		{"trace", "", unlessNone(l.readTrace)},
		{"overhead", "", readSize("the overhead per packet", 0, maxMTU, &l.Overhead)},
		{"queue", "", readNode(&l.queue)},
		{"loss", "", func(d *decoder, n *node) { l.Loss = readLoss(d, n) }},
		{"duplicate", "", readCorrelated(
			"the share of packets that are duplicated", &l.Duplicate, &l.Correlation.Duplicate)},
		{"corrupt", "", unlessNone(l.readCorrupt)},
		{"truncate", "", readShare("the share of packets that are truncated", &l.Truncate)},
		{"reorder", "", unlessNone(l.readReorder)},
		{"policer", "", unlessNone(l.readPolicer)},
	}
}

// defaultQueue is the default queue of a link with a rate.
const defaultQueue = "200ms"

func (x *draft) readPath(d *decoder, root *node) {
	down, up := &link{}, &link{}
	switch {
	case x.mahimahi != nil && x.path != nil:
		d.bad(x.mahimahi, "mm and path both describe the path", "only one of them")
		return
	case x.mahimahi != nil:
		readMahimahi(d, x.mahimahi, down, up)
	case x.path == nil && root.get("path") != nil: // fill has reported that the key has no value
		return
	case x.path == nil:
		d.report.add(root.place, "the experiment has no path",
			"path: {down: {…}}, or mm: with a mahimahi command line")
		return
	case !d.fill(x.path, "a path", pathKeys):
		return
	case x.path.get("down") == nil:
		d.bad(x.path, "the path has no down, the direction of the data", "down: {delay: 20ms, …}")
		return
	default:
		n := x.path.get("down")
		down.read(d, n)
		up.read(d, withSame(x.path.get("up"), n))
		if u := x.path.get("up"); (u == nil || u.get("delay").plain("same")) &&
			n.get("delay") == nil {
			up.Delay = down.Delay // the delay is in the arguments of netem
		}
	}
	d.unread = down.unknown || up.unknown
	d.rtt = down.Delay + up.Delay
	d.bottleneck = cmp.Or(down.mean, up.mean)
	down.readQueue(d)
	up.readQueue(d)
	x.Path.Down, x.Path.Up = down.Config, up.Config
}

func (l *link) read(d *decoder, n *node) {
	l.at = n
	if n.kind == scalar && !n.empty() { // the value is only arguments of netem
		l.readNetem(d, n)
		return
	}
	d.fill(n, "a path direction", l.keys())
}

// defaultUp is the default return direction: the same delay, and no impairments.
func defaultUp(p place) *node {
	return &node{place: p, kind: mapping, pairs: []pair{
		{&node{place: p, text: "delay"}, &node{place: p, text: "same"}},
	}}
}

// withSame replaces "same" in the direction up by the value of the direction down.
func withSame(n, down *node) *node {
	switch {
	case n == nil || n.empty():
		n = defaultUp(down.place)
	case n.plain("same"):
		return down
	}
	if n.kind != mapping {
		return n
	}
	out := *n
	out.pairs = nil
	for _, p := range n.pairs {
		if p.value.plain("same") {
			if p.value = down.get(p.key.text); p.value == nil {
				if p.key.text == "delay" || slices.Contains(names(new(link).keys()), p.key.text) {
					continue // down does not have the key
				}
				p.value = &node{place: p.key.place, text: "same"}
			}
		}
		out.pairs = append(out.pairs, p)
	}
	return &out
}

func (l *link) readRate(d *decoder, n *node) {
	l.rateNode = n
	if n.kind == mapping {
		l.readSchedule(d, n)
	} else if r, ok := d.rate(n, "a link's rate"); ok {
		l.Rate = netem.BitsPerSecond(r)
	}
	l.mean = meanRate(l.Rate, d.duration)
	l.unknown = l.Rate == nil
}
