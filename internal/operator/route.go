package operator

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

func handleRoutes(h *Requests) {
	look(h, func(s *stack.Stack, _ clock.Time, _ control.Routes) ([]control.Route, error) {
		return s.Routing().Infos(), nil
	})
	look(h, func(s *stack.Stack, now clock.Time, _ control.RIP) (info control.RIPInfo, _ error) {
		for i, r := range s.RIPs() {
			if own := r.Info(now); i == 0 {
				info = own
			} else {
				info.RIPng = &own
			}
		}
		return info, nil
	})
	order(h, addRoute)
	order(h, func(s *stack.Stack, now clock.Time, r control.DelRoute) error {
		return s.Routing().Remove(now, r.Prefix, r.Via)
	})
}

// maxMetric is the largest metric of a static route.
const maxMetric = 1<<31 - 1

func addRoute(s *stack.Stack, now clock.Time, r control.AddRoute) error {
	kind, ok := routeKinds[string(r.Kind)]
	switch {
	case !ok:
		return fmt.Errorf("route kind %q: %w: must be blackhole, unreachable or prohibit",
			r.Kind, control.ErrUsage)
	case r.Metric < 0 || r.Metric > maxMetric:
		return fmt.Errorf("metric %d: %w: must be 0 to %d", r.Metric, control.ErrUsage, maxMetric)
	case kind != ip.Forwarded && r.Via.IsValid():
		return fmt.Errorf("%v: %w: a route of kind %s must not have a next hop", r.Via,
			control.ErrUsage,
			r.Kind)
	}
	return s.Routing().Add(now, stack.Route{
		Prefix: r.Prefix, Via: r.Via, Metric: r.Metric, Kind: kind,
	})
}

// routeKinds are the kinds of routes by name.
var routeKinds = map[string]ip.Kind{
	"": ip.Forwarded, "blackhole": ip.Blackhole, "unreachable": ip.Unreachable,
	"prohibit": ip.Prohibited,
}
