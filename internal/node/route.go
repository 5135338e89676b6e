package node

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// kinds are what operators call the kinds of routes.
var kinds = map[string]ip.Kind{
	"": ip.Forwarded, "blackhole": ip.Blackhole, "unreachable": ip.Unreachable,
	"prohibit": ip.Prohibited,
}

func (n *Node) addRoute(r control.AddRoute) error {
	kind, ok := kinds[string(r.Kind)]
	switch {
	case !ok:
		return fmt.Errorf("a route that is %q: %w: want blackhole, unreachable or prohibit",
			r.Kind, control.ErrUsage)
	case r.Metric < 0 || r.Metric > maxMetric:
		return fmt.Errorf("metric %d: %w: want 0 to %d", r.Metric, control.ErrUsage, maxMetric)
	case kind != ip.Forwarded && r.Via.IsValid():
		return fmt.Errorf("%v: %w: a route that is %s has no next hop", r.Via, control.ErrUsage,
			r.Kind)
	}
	var err error
	callErr := n.call(func(now clock.Time) {
		err = n.stack.AddRoute(now, stack.Route{
			Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: kind,
		})
	})
	return ControlError(firstError(callErr, NetError(err)))
}

// maxMetric is the largest metric of a static route.
const maxMetric = 1<<31 - 1

func (n *Node) delRoute(r control.DelRoute) error {
	var err error
	callErr := n.call(func(now clock.Time) { err = n.stack.DelRoute(now, r.Prefix, r.Via) })
	return ControlError(firstError(callErr, NetError(err)))
}
