package plan

import (
	"math"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
)

// waitingRoom is a queue in the making.
type waitingRoom struct {
	kind           string
	limits         *node
	packets, bytes int
	// Of CoDel, PIE and FQ-CoDel.
	target, interval, update, burst time.Duration
	flows, quantum                  int
	// Of RED.
	low, high        threshold
	maxP, weight     float64
	abrupt, ecn      bool
	markAll          bool
	lowNode, maxNode *node
}

// threshold is a length of a queue, in bytes or in packets.
type threshold struct {
	n         int
	inPackets bool
}

// queueKinds are the disciplines that there are, in the order of messages, and which keys each
// has beyond type and limit.
var queueKinds = []struct {
	name string
	keys []string
}{
	{"droptail", nil},
	{"drophead", nil},
	{"red", []string{"min", "max", "max_p", "weight", "gentle", "ecn", "mark_all"}},
	{"codel", []string{"target", "interval", "ecn"}},
	{"pie", []string{"target", "update", "burst", "ecn"}},
	{"fq_codel", []string{"target", "interval", "flows", "quantum", "ecn"}},
	{"infinite", nil},
}

// queueNames are their names.
var queueNames = func() []string {
	list := make([]string, len(queueKinds))
	for i, k := range queueKinds {
		list[i] = k.name
	}
	return list
}()

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
	{"update", "", func(d *decoder, n *node, q *waitingRoom) {
		d.time(n, "how often the probability changes", time.Minute, &q.update)
	}},
	{"burst", "", func(d *decoder, n *node, q *waitingRoom) {
		d.time(n, "how long a burst is left alone", maxDelay, &q.burst)
	}},
	{"flows", "", func(d *decoder, n *node, q *waitingRoom) {
		const most = 1 << 16
		d.count(n, "how many queues", most, &q.flows)
	}},
	{"quantum", "", func(d *decoder, n *node, q *waitingRoom) {
		d.size(n, "how much a flow sends in its turn", 1, maxQueue, &q.quantum)
	}},
	{"min", "", func(_ *decoder, n *node, q *waitingRoom) { q.lowNode = n }},
	{"max", "", func(_ *decoder, n *node, q *waitingRoom) { q.maxNode = n }},
	{"max_p", "", func(d *decoder, n *node, q *waitingRoom) {
		d.share(n, "the probability at max", &q.maxP)
	}},
	{"weight", "", func(d *decoder, n *node, q *waitingRoom) {
		m, ok := d.quantity(n, "the weight of each arrival", shareOf, pureNumber)
		if ok && (m.value <= 0 || m.value > 1) {
			d.bad(n, n.text+" is out of range", "above 0, to 1")
		}
		q.weight = m.value
	}},
	{"gentle", "on", func(d *decoder, n *node, q *waitingRoom) {
		q.abrupt = true
		d.unless(n, &q.abrupt)
	}},
	{"ecn", "", func(d *decoder, n *node, q *waitingRoom) { d.truth(n, &q.ecn) }},
	{"mark_all", "", func(d *decoder, n *node, q *waitingRoom) { d.truth(n, &q.markAll) }},
}

// anyRate is for reading a queue while nobody knows how fast the link is.
const anyRate = 12e6

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
		l.mean = anyRate
	case l.mean == 0:
		d.bad(n, "a queue without a rate is always empty", "a rate or a trace beside it")
		return
	}
	q := waitingRoom{kind: "droptail"}
	switch {
	case n.kind == mapping:
		if !fill(d, n, "a queue", queueKeys, &q) || q.kind == "" {
			return
		}
		d.foreignKeys(n, &q)
	case slices.Contains(queueNames, n.text):
		q.kind = n.text
	default:
		q.limits = n
	}
	if q.limits == nil && slices.Contains([]string{"droptail", "drophead", "red"}, q.kind) {
		q.limits = usualNode(n, usualQueue)
	}
	if q.limits != nil {
		d.limits(q.limits, l, &q)
	}
	if q.kind == "red" && !d.thresholds(l, &q) {
		return
	}
	if made := q.discipline(); made != nil {
		l.Queue = made
		if v, ok := made.(interface{ Validate() error }); ok {
			d.check(n, v)
		}
	}
}

// foreignKeys refuses the keys of another kind of queue.
func (d *decoder) foreignKeys(n *node, q *waitingRoom) {
	own := []string{"type"}
	if q.kind != "infinite" {
		own = append(own, "limit")
	}
	for _, k := range queueKinds {
		if k.name == q.kind {
			own = append(own, k.keys...)
		}
	}
	for _, p := range n.pairs {
		name := p.key.text
		if slices.Contains(names(queueKeys), name) && !slices.Contains(own, name) {
			d.bad(p.key, "a queue of type "+q.kind+" has no "+name, oneOf(own))
		}
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

// limit reads a limit into the queue.
func (d *decoder) limit(n *node, l *link, q *waitingRoom) {
	t, ok := d.length(n, "a queue's limit", l)
	switch {
	case !ok:
	case t.inPackets:
		q.packets = t.n
	case float64(t.n) < d.packet(l):
		d.bad(n, "no packet of the MTU fits into "+bytesText(float64(t.n)),
			bytesText(d.packet(l))+" or more, or 1pkt")
	default:
		q.bytes = t.n
	}
}

// length reads the length of a queue in any of its units. In times or bandwidth-delay products
// it is at least one packet.
func (d *decoder) length(n *node, what string, l *link) (threshold, bool) {
	m, ok := d.quantity(n, what, dataSize, packetCount, bdpCount, timeSpan)
	if !ok {
		return threshold{}, false
	}
	const bits = 8
	switch m.of {
	case packetCount:
		if m.value < 1 || m.value > maxQueuePackets || m.value != math.Trunc(m.value) {
			d.bad(n, n.text+" is out of range", "1pkt to 1048576pkt")
			return threshold{}, false
		}
		return threshold{int(m.value), true}, true
	case bdpCount:
		if d.rtt == 0 {
			d.bad(n, "a bandwidth-delay product of a path without a delay is nothing",
				"a delay in path.down or path.up, or a limit in bytes")
			return threshold{}, false
		}
		m.value = max(math.Round(m.value*l.mean*d.rtt.Seconds()/bits), d.packet(l))
	case timeSpan:
		m.value = max(math.Round(m.value/1e9*l.mean/bits), d.packet(l))
	default:
	}
	if m.value < 1 || m.value > maxQueue {
		d.bad(n, n.text+" is out of range", what+" up to 1GiB")
		return threshold{}, false
	}
	return threshold{int(math.Round(m.value)), false}, true
}

// packet is what a packet of the MTU takes of a queue.
func (d *decoder) packet(l *link) float64 {
	if _, ok := l.Rate.(netem.Opportunities); ok {
		return float64(d.mtu + netem.OpportunityOverhead)
	}
	return float64(d.mtu)
}

// thresholds reads where RED begins and where its probability is max_p.
func (d *decoder) thresholds(l *link, q *waitingRoom) bool {
	if q.maxNode == nil && q.lowNode != nil {
		d.bad(q.lowNode, "min without max", "both of them")
		return false
	}
	if q.maxNode == nil { // a quarter of the limit, in the limit's unit
		q.high.inPackets = q.packets > 0 && q.bytes == 0
		return true
	}
	var ok bool
	if q.high, ok = d.length(q.maxNode, "the queue at max_p", l); !ok || q.lowNode == nil {
		return ok
	}
	if q.low, ok = d.length(q.lowNode, "the queue from which packets are dropped", l); !ok {
		return false
	}
	if q.low.inPackets != q.high.inPackets {
		d.bad(q.lowNode, "min and max in different units", "both in bytes or both in packets")
		return false
	}
	if q.low.n >= q.high.n {
		d.bad(q.lowNode, "min is not below max", "less than "+q.maxNode.text)
		return false
	}
	return true
}

// discipline makes the queue; nil: it has no limit.
func (q *waitingRoom) discipline() netem.Discipline {
	switch q.kind {
	case "droptail":
		return netem.DropTail{Packets: q.packets, Bytes: q.bytes}
	case "drophead":
		return netem.DropHead{Packets: q.packets, Bytes: q.bytes}
	case "red":
		return netem.RED{
			Min: q.low.n, Max: q.high.n, InPackets: q.high.inPackets, MaxP: q.maxP,
			Weight: q.weight, Abrupt: q.abrupt, ECN: q.ecn, Packets: q.packets, Bytes: q.bytes,
			MarkAll: q.markAll,
		}
	case "codel":
		return netem.CoDel{
			Target: q.target, Interval: q.interval, Packets: q.packets, Bytes: q.bytes, ECN: q.ecn,
		}
	case "pie":
		return netem.PIE{
			Target: q.target, Update: q.update, Burst: q.burst, ECN: q.ecn,
			Packets: q.packets, Bytes: q.bytes,
		}
	case "fq_codel":
		return netem.FQCoDel{
			Target: q.target, Interval: q.interval, Flows: q.flows, Quantum: q.quantum, ECN: q.ecn,
			Packets: q.packets, Bytes: q.bytes,
		}
	}
	return nil
}
