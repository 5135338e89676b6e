package node

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// RouteKinds are what operators call the kinds of routes.
var RouteKinds = map[string]ip.Kind{
	"": ip.Forwarded, "blackhole": ip.Blackhole, "unreachable": ip.Unreachable,
	"prohibit": ip.Prohibited,
}

// RestartRIP goes on with RIP as the configuration has it now. The loop's.
func (n *Node) RestartRIP(now clock.Time) error {
	cfg := n.cfg.Stack
	n.setRIP(&cfg, netem.Streams(n.seedFor(&netem.Config{}))("rip"))
	return n.stack.RIP().Restart(now, cfg)
}
