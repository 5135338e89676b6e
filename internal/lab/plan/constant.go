package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab/formula"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// constantNames are the names that formulas can use for values of the experiment itself.
var constantNames = []formula.Variable{
	{Name: "path.rtt", Unit: formula.Seconds}, // the path's round-trip time without a queue
	{Name: "path.rate", Unit: formula.Rate},   // mean rate down
	{Name: "path.bdp", Unit: formula.Bytes},   // product of path.rtt and path.rate
	{Name: "path.queue", Unit: formula.Bytes}, // limit of the queue down
	{Name: "path.buffer"},                     // the same, in bandwidth-delay products
	{Name: "path.loss"},                       // mean loss down
	{Name: "path.loss.up"},
	{Name: "mss", Unit: formula.Bytes}, // segment size of the first flow
	{Name: "mtu", Unit: formula.Bytes},
	{Name: "flows"},
	{Name: "duration", Unit: formula.Seconds},
	{Name: "warmup", Unit: formula.Seconds},
}

// Constant returns the value of one of constantNames. It returns false if the experiment does not
// have the value, such as path.rate of a path with unlimited rate.
func (x *Experiment) Constant(name string) (float64, bool) {
	rtt := x.RTT(&Flow{}).Seconds()
	rate := meanRate(x.Path.Down.Rate, x.Duration)
	queue := float64(QueueBytes(x.Path.Down.Queue, x.Path.MTU))
	const bits = 8
	switch name {
	case "path.rtt":
		return rtt, true
	case "path.rate":
		return rate, rate > 0
	case "path.bdp":
		return rtt * rate / bits, rate > 0
	case "path.queue":
		return queue, queue > 0
	case "path.buffer":
		return queue / (rtt * rate / bits), queue > 0 && rtt*rate > 0
	case "path.loss":
		return meanLoss(x.Path.Down.Loss)
	case "path.loss.up":
		return meanLoss(x.Path.Up.Loss)
	case "mss":
		return x.segmentBytes(), x.Flows[0].MSS > 0
	case "mtu":
		return float64(x.Path.MTU), true
	case "flows":
		return float64(len(x.Flows)), true
	case "duration":
		return x.Duration.Seconds(), true
	case "warmup":
		return x.Warmup.Seconds(), true
	}
	return 0, false
}

// timestampBytes is the size of RFC 7323's option in each segment, with padding.
const timestampBytes = 12

// segmentBytes returns the amount of data in the first flow's largest segment.
func (x *Experiment) segmentBytes() float64 {
	if f := &x.Flows[0]; !f.TCP.NoTimestamps {
		return float64(f.MSS - timestampBytes)
	}
	return float64(x.Flows[0].MSS)
}

// QueueBytes returns the limit of a queue in bytes. A packet counts as the MTU. It returns 0 if
// neither bytes nor packets are limited.
func QueueBytes(d netem.Discipline, mtu int) int {
	_, b := QueueBound(d)
	if n := b.Packets * mtu; n > 0 && (b.Bytes == 0 || n < b.Bytes) {
		return n
	}
	return b.Bytes
}

// QueueBound returns the name of a queue's discipline and its limits.
func QueueBound(d netem.Discipline) (name string, b netem.Bound) {
	switch q := d.(type) {
	case netem.DropTail:
		return "droptail", netem.Bound(q)
	case netem.DropHead:
		return "drophead", netem.Bound(q)
	case netem.RED:
		return "red", netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time}
	case netem.CoDel:
		return "codel", netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time}
	case netem.PIE:
		return "pie", netem.Bound{Packets: q.Packets, Bytes: q.Bytes, Time: q.Time}
	case netem.FQCoDel:
		return "fq_codel", netem.Bound{Packets: q.Packets, Bytes: q.Bytes}
	}
	return "infinite", b
}

// meanLoss returns the share of packets that a model loses in the long run. It returns false if the
// share depends on when or how many packets are sent.
func meanLoss(l netem.Loss) (float64, bool) {
	switch l := l.(type) {
	case nil:
		return 0, true
	case netem.UniformLoss:
		return float64(l), true
	case netem.CorrelatedLoss:
		return l.Share, true
	case netem.PeriodicLoss:
		return 1 / float64(l.Every), true
	case interface{ Mean() float64 }:
		return l.Mean(), true
	}
	return 0, false
}

// Variable returns the value of a name in a formula: a swept variable of the cell, or one of
// constantNames. It implements a method of formula.Env.
func (c *Cell) Variable(name string) (float64, error) {
	for _, s := range c.Set {
		if s.Name != name {
			continue
		}
		v, _, ok := formula.Number(s.Value)
		if !ok {
			return 0, fmt.Errorf("%s is %s, which is not a number", name, s.Value)
		}
		return v, nil
	}
	if v, ok := c.Constant(name); ok {
		return v, nil
	}
	return 0, fmt.Errorf("this experiment has no %s", name)
}

// nameVariables gives swept variables their shortest unique names: cc for flows.0.cc, or down.delay
// and up.delay if both are swept.
func nameVariables(vars []variable) {
	defer func() {
		for i := range vars {
			vars[i].scope = vars[i].scoped()
		}
	}()
	for i := range vars {
		v := &vars[i]
		if v.named {
			continue
		}
		parts := strings.Split(v.key, ".")
		v.name = v.key
		for from := len(parts) - 1; from > 0; from-- {
			short := strings.Join(parts[from:], ".")
			if strings.Trim(short[:min(1, len(short))], "0123456789*-+") == "" {
				continue // formulas cannot use this name
			}
			if v.alone(short, vars, i) {
				v.name = short
				break
			}
		}
	}
}

// alone reports whether no other variable and no constant has the short name.
func (v *variable) alone(short string, vars []variable, at int) bool {
	for i := range vars {
		if i != at && (vars[i].named && vars[i].key == short ||
			!vars[i].named && strings.HasSuffix("."+vars[i].key, "."+short)) {
			return false
		}
	}
	return v.key == short || !slices.ContainsFunc(constantNames, func(c formula.Variable) bool {
		return c.Name == short
	})
}
