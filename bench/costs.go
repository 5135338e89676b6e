//go:build linux

package main

import (
	"context"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/report"
)

// cost is a case that measures CPU time or memory of tidepool and of gVisor.
type cost struct {
	name, unit string
	kind       string
	count      int
	goal       float64
}

// maxChurn limits the connections of a run: each takes one of the client's ports.
const maxChurn = 12_000

func costs() []cost {
	return []cost{
		{name: "request-reply", unit: "µs CPU", kind: end.Ask, goal: 0.6},
		{name: "connect-close", unit: "µs CPU", kind: end.Churn, count: maxChurn, goal: 0.5},
		{name: "idle", unit: "B of heap", kind: end.Hold, count: 10_000},
		{name: "idle-used", unit: "B of heap", kind: end.Used, count: 10_000},
	}
}

// measureCost runs tidepool and gVisor in turns.
func (s *session) measureCost(ctx context.Context, c *cost) (r report.Row, err error) {
	trial := func(stack string) lead.Trial {
		l := &lead.Cost{Stack: stack, Kind: c.kind, For: 2 * s.span, Count: c.count}
		if c.kind == end.Churn {
			l.For = max(l.For, time.Second)
		}
		return lead.Trial{Name: stack, Run: l.Run}
	}
	all := s.turns.Run(ctx, c.name, trial("tidepool"), trial("gvisor"))
	r, err = compare(&streamCase{name: c.name},
		&peer{name: "gvisor-tuned", goal: c.goal}, &all[0], &all[1])
	r.Unit, r.LessIsBetter = c.unit, true
	return r, err
}
