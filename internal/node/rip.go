package node

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// RouteKinds are what operators call the kinds of routes.
var RouteKinds = map[string]ip.Kind{
	"": ip.Forwarded, "blackhole": ip.Blackhole, "unreachable": ip.Unreachable,
	"prohibit": ip.Prohibited,
}

// ripOverhead is what a message of the course's RIP is longer than its entries: an IP
// header, command and count.
const ripOverhead = 24

// setRIP has the stack speak what the file says.
func (n *Node) setRIP(cfg *stack.Config, rng *rand.Rand) {
	c := n.cfg.LNX
	if c.Routing != lnx.RoutingRIP && c.Routing != lnx.RoutingRIP2 {
		return
	}
	for _, a := range c.RIP.Originate {
		cfg.Originate = append(cfg.Originate, rip.External{
			Prefix: a.Prefix, Iface: -1, Tag: a.Tag, Metric: a.Metric,
		})
	}
	if a := c.RIP.Static; a != nil {
		cfg.Redistribute = &rip.External{Tag: a.Tag, Metric: a.Metric}
	}
	cfg.RIP = &rip.Config{
		Timers: rip.Timers{
			Periodic: c.RIP.Periodic, PeriodicOffset: c.RIP.Offset, Timeout: c.RIP.Timeout,
			Garbage: c.RIP.Garbage, TriggerMin: c.RIP.TriggerMin,
			TriggerMax: c.RIP.TriggerMax, HoldDown: c.RIP.HoldDown,
			AskAfter: c.RIP.AskAfter,
		},
		EntrySize: c.RIP.EntrySize, MaxEntries: n.courseEntries(), Neighbors: n.ripNeighbors(),
		Rand: rng,
	}
	for i := range c.Interfaces {
		cfg.RIP.Interfaces = append(cfg.RIP.Interfaces, ripInterface(&c.Interfaces[i]))
	}
	if c.Routing == lnx.RoutingRIP2 {
		cfg.RIP.Dialect = rip.RIPv2
		if n.cfg.Clock == nil {
			// Further on after a restart than before it: RFC 4822 §2.
			cfg.RIP.Sequence = uint32(time.Now().Unix())
		}
	}
}

// RIPOf is how a file has RIP spoken, in a node with these interfaces.
func (n *Node) RIPOf(c *lnx.Config) (cfg stack.Config) {
	trial := &Node{cfg: n.cfg}
	trial.cfg.LNX, _ = n.Devices.numbered(c)
	if trial.setRIP(&cfg, nil); cfg.RIP != nil {
		cfg.RIP.Sequence = 0 // it is the time of day
	}
	return cfg
}

// RestartRIP goes on with RIP as the file has it now. The loop's.
func (n *Node) RestartRIP(now clock.Time) error {
	var cfg stack.Config
	n.setRIP(&cfg, netem.Streams(n.seedFor(&netem.Config{}))("rip"))
	return n.stack.RIP().Restart(now, cfg)
}

// courseEntries is how many entries a message of the course's dialect has: it has to fit
// the smallest link whole. 0: as many as there may be.
func (n *Node) courseEntries() (most int) {
	for i := range n.cfg.LNX.Interfaces {
		if mtu := n.cfg.LNX.Interfaces[i].MTU; mtu > 0 {
			fit := max(1, (mtu-ripOverhead)/rip.EntrySize)
			if most == 0 || fit < most {
				most = min(fit, rip.MaxEntries)
			}
		}
	}
	return most
}

// ripNeighbors are those that the file advertises to.
func (n *Node) ripNeighbors() (list []rip.Neighbor) {
	c := n.cfg.LNX
	for _, to := range c.RIP.AdvertiseTo {
		for _, nb := range c.Neighbors {
			i := slices.IndexFunc(c.Interfaces, func(f lnx.Interface) bool {
				return f.Name == nb.Iface
			})
			if nb.Addr == to && i >= 0 {
				list = append(list, rip.Neighbor{Addr: to, Iface: i})
			}
		}
	}
	return list
}

// ripInterface says what the file says. Its words were judged when it was read.
func ripInterface(f *lnx.Interface) rip.Interface {
	if f.Name == "" { // it is no more
		return rip.Interface{Passive: true, Send: rip.SendNone, Receive: rip.ReceiveNone}
	}
	r := rip.Interface{
		Addr: f.Addr, MTU: f.MTU, Passive: f.RIP.Passive, Cost: f.RIP.Cost,
	}
	r.Send, _ = rip.ParseSendMode(f.RIP.Send)
	r.Receive, _ = rip.ParseReceiveMode(f.RIP.Receive)
	for _, k := range f.RIP.Keys {
		algorithm, _ := rip.ParseAlgorithm(k.Algorithm)
		r.Keys = append(r.Keys, rip.Key{ID: k.ID, Algorithm: algorithm, Secret: []byte(k.Secret)})
	}
	return r
}

// publishRIP tells watchers what RIP did.
func (n *Node) publishRIP(e *rip.Event) {
	news := control.RIPNews{Text: e.String()}
	if e.Neighbor.IsValid() && e.Iface >= 0 && e.Iface < len(n.cfg.LNX.Interfaces) {
		news.Iface = n.cfg.LNX.Interfaces[e.Iface].Name
	}
	n.watchers.publish(news)
}
