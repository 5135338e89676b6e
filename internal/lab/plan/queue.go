package plan

import (
	"math"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// waitingRoom is a queue in the making.
type waitingRoom struct {
	kind             string
	packets, bytes   int
	target, interval time.Duration
	ecn              bool
	limits           *node
}

// queueKinds are the disciplines that there are, and which keys each has beyond its limit.
var queueKinds = map[string][]string{
	"droptail": nil,
	"codel":    {"target", "interval", "ecn"},
	"infinite": nil,
}

// queueNames are their names in the order of messages.
var queueNames = []string{"droptail", "codel", "infinite"}

var queueKeys = []key[waitingRoom]{
	{"type", "droptail", func(d *decoder, n *node, q *waitingRoom) {
		q.kind, _ = d.word(n, "a type of queue", queueNames)
	}},
	{"limit", "", func(_ *decoder, n *node, q *waitingRoom) { q.limits = n }},
	{"target", "", func(d *decoder, n *node, q *waitingRoom) {
		d.time(n, "the wait that is all right", maxDelay, &q.target)
	}},
	{"interval", "", func(d *decoder, n *node, q *waitingRoom) {
		d.time(n, "how long the wait may be longer", maxDelay, &q.interval)
	}},
	{"ecn", "", func(d *decoder, n *node, q *waitingRoom) { d.truth(n, &q.ecn) }},
}

// waiting reads the queue of a direction, when the path's rates and delays are known.
func (d *decoder) waiting(l *link) {
	n := l.queue
	switch {
	case n == nil && (l.mean == 0 || l.Queue != nil):
		return
	case n == nil:
		n = usualNode(l.at, usualQueue)
	case n.plain("infinite"):
		return
	case l.mean == 0 && l.unknown:
		return // it is reported what is wrong with the rate
	case l.mean == 0:
		d.bad(n, "a queue without a rate is always empty", "a rate or a trace beside it")
		return
	}
	q := waitingRoom{kind: "droptail"}
	switch n.kind {
	case mapping:
		if !fill(d, n, "a queue", queueKeys, &q) || q.kind == "" {
			return
		}
		d.foreignKeys(n, &q)
	case scalar, list:
		if slices.Contains(queueNames, n.text) {
			q.kind = n.text
		} else {
			q.limits = n
		}
	}
	if q.limits == nil && q.kind == "droptail" {
		q.limits = usualNode(n, usualQueue)
	}
	if q.limits != nil {
		d.limits(q.limits, l, &q)
	}
	l.Queue = d.discipline(n, &q)
}

// foreignKeys refuses the keys of another kind of queue.
func (d *decoder) foreignKeys(n *node, q *waitingRoom) {
	for _, p := range n.pairs {
		name := p.key.text
		if name == "type" || name == "limit" && q.kind != "infinite" ||
			slices.Contains(queueKinds[q.kind], name) || !slices.Contains(names(queueKeys), name) {
			continue
		}
		d.bad(p.key, "a queue of type "+q.kind+" has no "+name, oneOf(append([]string{
			"type",
			"limit",
		}, queueKinds[q.kind]...)))
	}
}

// limits reads one limit or a list of them.
func (d *decoder) limits(n *node, l *link, q *waitingRoom) {
	if n.kind != list {
		d.limit(n, l, q)
		return
	}
	for _, item := range n.items {
		d.limit(item, l, q)
	}
}

// maxQueue bounds a queue's bytes; netem's own bound on what is inside a link moves with it.
const (
	maxQueue        = 1 << 30
	maxQueuePackets = 1 << 20
)

// limit reads a limit in any of its units. In times or bandwidth-delay products it is at least
// one packet.
func (d *decoder) limit(n *node, l *link, q *waitingRoom) {
	m, ok := d.quantity(n, "a queue's limit", dataSize, packetCount, bdpCount, timeSpan)
	if !ok {
		return
	}
	const bits = 8
	switch m.of {
	case packetCount:
		if m.value < 1 || m.value > maxQueuePackets || m.value != math.Trunc(m.value) {
			d.bad(n, n.text+" is out of range", "1pkt to 1048576pkt")
			return
		}
		q.packets = int(m.value)
		return
	case bdpCount:
		if d.rtt == 0 {
			d.bad(n, "a bandwidth-delay product of a path without a delay is nothing",
				"a delay in path.down or path.up, or a limit in bytes")
			return
		}
		m.value = max(math.Round(m.value*l.mean*d.rtt.Seconds()/bits), float64(d.mtu))
	case timeSpan:
		m.value = max(math.Round(m.value/1e9*l.mean/bits), float64(d.mtu))
	default:
	}
	if m.value < float64(d.mtu) {
		d.bad(n, "no packet of the MTU fits into "+bytesText(m.value),
			bytesText(float64(d.mtu))+" or more, or 1pkt")
		return
	}
	if m.value > maxQueue {
		d.bad(n, n.text+" is out of range", "a queue's limit up to 1GiB")
		return
	}
	q.bytes = int(math.Round(m.value))
}

// discipline makes the queue.
func (d *decoder) discipline(n *node, q *waitingRoom) netem.Discipline {
	var made netem.Discipline
	switch q.kind {
	case "droptail":
		made = netem.DropTail{Packets: q.packets, Bytes: q.bytes}
	case "codel":
		made = netem.CoDel{
			Target: q.target, Interval: q.interval, Packets: q.packets, Bytes: q.bytes, ECN: q.ecn,
		}
	default:
		return nil
	}
	if v, ok := made.(interface{ Validate() error }); ok {
		d.check(n, v)
	}
	return made
}
