package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
)

type step struct {
	at    time.Duration
	value float64
}

const maxSteps = 100_000

// steps reads a list of pairs: [[0s, 1Mbit/s], [40s, 2.5Mbit/s]].
func (d *decoder) steps(n *node, what string, of result.Unit) ([]step, bool) {
	value, _, _ := strings.Cut(measures[of].example, " ")
	example := "[[0s, " + value + "], [40s, …]]"
	if n.kind != list || len(n.items) == 0 || len(n.items) > maxSteps {
		d.bad(n, n.shown()+" is not a list of steps", what+", such as "+example)
		return nil, false
	}
	out := make([]step, 0, len(n.items))
	for _, item := range n.items {
		const pair = 2
		if item.kind != list || len(item.items) != pair {
			d.bad(item, item.shown()+" is not a step", "a time and "+what+", such as "+example)
			return nil, false
		}
		at, ok := d.span(item.items[0], "a start time", 0, maxSpan)
		if !ok {
			return nil, false
		}
		m, ok := d.quantity(item.items[1], what, of)
		if !ok {
			return nil, false
		}
		if last := len(out) - 1; last >= 0 && at <= out[last].at {
			d.bad(item.items[0], fmt.Sprintf("the step at %v follows one at %v", at, out[last].at),
				"steps in order of time")
			return nil, false
		}
		out = append(out, step{at, math.Round(m.value)})
	}
	return out, true
}

type scheduleDraft struct {
	steps *node
	netem.Schedule
}

func (s *scheduleDraft) keys() []key {
	return []key{
		{"steps", "", readNode(&s.steps)},
		{"every", "", readTime("the period of the steps", maxSpan, &s.Every)},
	}
}

func (l *link) readSchedule(d *decoder, n *node) {
	var s scheduleDraft
	if !d.fill(n, "a variable rate", s.keys()) {
		return
	}
	if s.steps == nil {
		d.bad(n, "the rate has no steps", "steps: [[0s, 1Mbit/s], [40s, 2.5Mbit/s]]")
		return
	}
	steps, ok := d.steps(s.steps, "a link's rate", result.Rate)
	if !ok {
		return
	}
	if steps[0].at != 0 {
		d.bad(s.steps.items[0], "the first step is at "+steps[0].at.String(), "0s")
		return
	}
	for i, st := range steps {
		if st.value > maxRate {
			d.bad(s.steps.items[i], "out of range", "a rate up to 1Tbit/s")
			return
		}
		s.Steps = append(s.Steps, netem.Step{At: st.at, Rate: netem.BitsPerSecond(st.value)})
	}
	if d.check(n, s.Schedule) {
		l.Rate = s.Schedule
	}
}

// meanRate returns a rate's mean over the run in bit/s; 0: unlimited.
func meanRate(r netem.Rate, duration time.Duration) float64 {
	s, changes := r.(netem.Schedule)
	switch {
	case r == nil:
		return 0
	case !changes || s.Every > 0 || duration == 0:
		return float64(r.MeanRate())
	}
	sum := 0.0
	s.Each(duration, func(rate netem.BitsPerSecond, begin, end time.Duration) {
		sum += float64(float64(rate) * (end - begin).Seconds())
	})
	return sum / duration.Seconds()
}

func policerKeys(p *netem.Policer) []key {
	return []key{
		{"rate", "", func(d *decoder, n *node) {
			r, _ := d.rate(n, "the policer's rate")
			p.Rate = netem.BitsPerSecond(r)
		}},
		{"burst", "", func(d *decoder, n *node) {
			readSize("the policer's burst", 1, maxQueue, &p.Burst)(d, n)
			if p.Burst > 0 && p.Burst < d.mtu {
				d.bad(n, "a packet of the MTU does not fit into a burst of "+n.text,
					strconv.Itoa(d.mtu)+"B or more")
			}
		}},
		{"mark", "", readSwitch(&p.Mark)},
	}
}

func (l *link) readPolicer(d *decoder, n *node) {
	var p netem.Policer
	switch {
	case !d.fill(n, "a policer", policerKeys(&p)):
	case n.get("rate") == nil || n.get("burst") == nil:
		d.bad(n, "a policer needs a rate and a burst", "{rate: 12Mbit/s, burst: 15kB}")
	default:
		l.Policer = &p
	}
}
