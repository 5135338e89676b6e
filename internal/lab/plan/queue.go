package plan

import (
	"math"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

type queue struct {
	netem.QueueSpec
	limits, lowNode, maxNode *node
}

// threshold is a queue length, in bytes or in packets.
type threshold struct {
	n         int
	inPackets bool
}

// queueKinds are the disciplines, with their keys other than type and limit.
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

var queueNames = func() []string {
	list := make([]string, len(queueKinds))
	for i, k := range queueKinds {
		list[i] = k.name
	}
	return list
}()

func (q *queue) keys() []key {
	const mostFlows = 1 << 16
	return []key{
		{"type", "droptail", readWord("a type of queue", queueNames, &q.Discipline)},
		{"limit", "", readNode(&q.limits)},
		{"target", "", readTime("the target queueing delay", maxDelay, &q.Target)},
		{"interval", "", readTime("the time allowed above the target", maxDelay, &q.Interval)},
		{"update", "", readTime("the update interval", time.Minute, &q.PIE.Update)},
		{"burst", "", readTime("the length of a burst without drops", maxDelay, &q.PIE.Burst)},
		{"flows", "", readCount("a number of queues", mostFlows, &q.Flows)},
		{"quantum", "", readSize(
			"the quantum of a flow", 1, maxQueue, &q.Quantum)},
		{"min", "", readNode(&q.lowNode)},
		{"max", "", readNode(&q.maxNode)},
		{"max_p", "", readShare("the probability at max", &q.RED.MaxP)},
		{"weight", "", func(d *decoder, n *node) {
			m, ok := d.quantity(n, "the weight of each arrival", result.Percent, result.Pure)
			if ok && (m.value <= 0 || m.value > 1) {
				d.bad(n, n.text+" is out of range", "more than 0, up to 1")
			}
			q.RED.Weight = m.value
		}},
		{"gentle", "on", readInverse(&q.RED.Abrupt)},
		{"ecn", "", readSwitch(&q.ECN)},
		{"mark_all", "", readSwitch(&q.RED.MarkAll)},
	}
}

// placeholderRate replaces an unknown rate, so that the queue can still be checked.
const placeholderRate = 12e6

func (l *link) readQueue(d *decoder) {
	n := l.queue
	switch {
	case n == nil && (l.mean == 0 || l.Queue != nil):
		return
	case n == nil:
		n = defaultNode(l.at, defaultQueue)
	case n.plain("infinite"):
		return
	case l.mean == 0 && l.unknown:
		l.mean = placeholderRate
	case l.mean == 0:
		d.bad(n, "a queue needs a rate: without one it is always empty", "a rate or a trace")
		return
	}
	q := queue{QueueSpec: netem.QueueSpec{Discipline: "droptail"}}
	switch {
	case n.kind == mapping:
		if !d.fill(n, "a queue", q.keys()) || q.Discipline == "" {
			return
		}
		q.foreignKeys(d, n)
	case slices.Contains(queueNames, n.text):
		q.Discipline = n.text
	default:
		q.limits = n
	}
	if q.limits == nil && slices.Contains([]string{"droptail", "drophead", "red"}, q.Discipline) {
		q.limits = defaultNode(n, defaultQueue)
	}
	if q.limits != nil {
		q.readLimits(d, l)
	}
	if q.Discipline == "red" && !q.thresholds(d, l) {
		return
	}
	if q.Discipline == "infinite" {
		return
	}
	l.Queue = q.Queue()
	if v, ok := l.Queue.(interface{ Validate() error }); ok {
		d.check(n, v)
	}
}

// foreignKeys reports the keys that the discipline does not have.
func (q *queue) foreignKeys(d *decoder, n *node) {
	own := []string{"type"}
	if q.Discipline != "infinite" {
		own = append(own, "limit")
	}
	for _, k := range queueKinds {
		if k.name == q.Discipline {
			own = append(own, k.keys...)
		}
	}
	for _, p := range n.pairs {
		name := p.key.text
		if slices.Contains(names(q.keys()), name) && !slices.Contains(own, name) {
			d.bad(p.key, "a queue of type "+q.Discipline+" has no "+name, diagnostic.OneOf(own))
		}
	}
}

func (q *queue) readLimits(d *decoder, l *link) {
	if q.limits.kind != list {
		q.readLimit(d, q.limits, l)
		return
	}
	for _, item := range q.limits.items {
		q.readLimit(d, item, l)
	}
}

// maxQueue and maxQueuePackets limit a queue. maxQueue equals netem's limit of the bytes in a link.
const (
	maxQueue        = 1 << 30
	maxQueuePackets = 1 << 20
)

func (q *queue) readLimit(d *decoder, n *node, l *link) {
	t, ok := l.readLength(d, n, "a queue's limit")
	switch {
	case !ok:
	case t.inPackets:
		q.Packets = t.n
	case float64(t.n) < l.packet(d.mtu):
		d.bad(n, "a packet of the MTU does not fit into "+bytesText(float64(t.n)),
			bytesText(l.packet(d.mtu))+" or more, or 1pkt")
	default:
		q.Bytes = t.n
	}
}

// readLength reads the length of a queue in any of its units. A length given as a time or in
// bandwidth-delay products is at least one packet.
func (l *link) readLength(d *decoder, n *node, what string) (threshold, bool) {
	m, ok := d.quantity(n, what, result.Bytes, result.PacketCount, result.BDPs, result.Seconds)
	if !ok {
		return threshold{}, false
	}
	const bits = 8
	switch m.of {
	case result.PacketCount:
		if m.value < 1 || m.value > maxQueuePackets || m.value != math.Trunc(m.value) {
			d.bad(n, n.text+" is out of range", "1pkt to 1048576pkt")
			return threshold{}, false
		}
		return threshold{int(m.value), true}, true
	case result.BDPs:
		if d.rtt == 0 {
			d.bad(n, "the bandwidth-delay product of a path without a delay is zero",
				"a delay in path.down or path.up, or a limit in bytes")
			return threshold{}, false
		}
		m.value = max(math.Round(m.value*l.mean*d.rtt.Seconds()/bits), l.packet(d.mtu))
	case result.Seconds:
		m.value = max(math.Round(m.value/1e9*l.mean/bits), l.packet(d.mtu))
	default:
	}
	if m.value < 1 || m.value > maxQueue {
		d.bad(n, n.text+" is out of range", what+" up to 1GiB")
		return threshold{}, false
	}
	return threshold{int(math.Round(m.value)), false}, true
}

// packet returns the size of a packet of the MTU in the queue.
func (l *link) packet(mtu int) float64 {
	if _, ok := l.Rate.(netem.Opportunities); ok {
		return float64(mtu + netem.OpportunityOverhead)
	}
	return float64(mtu)
}

// thresholds reads RED's min and max.
func (q *queue) thresholds(d *decoder, l *link) bool {
	if q.maxNode == nil && q.lowNode != nil {
		d.bad(q.lowNode, "min needs max", "both of them")
		return false
	}
	if q.maxNode == nil { // default: a quarter of the limit, in the limit's unit
		q.RED.InPackets = q.Packets > 0 && q.Bytes == 0
		return true
	}
	high, ok := l.readLength(d, q.maxNode, "the queue at max_p")
	if q.RED.Max, q.RED.InPackets = high.n, high.inPackets; !ok || q.lowNode == nil {
		return ok
	}
	low, ok := l.readLength(d, q.lowNode, "the queue from which packets are dropped")
	if q.RED.Min = low.n; !ok {
		return false
	}
	if low.inPackets != high.inPackets {
		d.bad(q.lowNode, "min and max have different units", "both in bytes or both in packets")
		return false
	}
	if low.n >= high.n {
		d.bad(q.lowNode, "min must be less than max", "less than "+q.maxNode.text)
		return false
	}
	return true
}
