package simulation

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// dumbbell is the topology: two routers with the bottleneck between them, and its state.
type dumbbell struct {
	left, right *sim.Host
	path        *Path
	ends        []sim.End // from which wires lead away
}

// The addresses of the bottleneck.
var (
	nearBottleneck = netip.MustParsePrefix("172.16.0.1/30")
	farBottleneck  = netip.MustParsePrefix("172.16.0.2/30")
)

func (r *run) build() error {
	if n := len(r.x.Flows); n == 0 || n > MaxFlows {
		return fmt.Errorf("%d flows: want 1 to %d", n, MaxFlows)
	}
	var err error
	if r.net.left, err = r.router(Left, nearBottleneck, farBottleneck); err != nil {
		return err
	}
	if r.net.right, err = r.router(Right, farBottleneck, nearBottleneck); err != nil {
		return err
	}
	r.net.path = NewPath(r.x, r.began)
	near, far := sim.End{Host: r.net.left}, sim.End{Host: r.net.right}
	down, up := r.x.Path.Down, r.x.Path.Up
	down.Origin, up.Origin = r.began, r.began // of what changes with time
	if err := r.wire(near, far, down, up); err != nil {
		return err
	}
	r.net.path.Watch(near.Out(), far.Out())
	for i := range r.x.Flows {
		if err := r.addFlow(i); err != nil {
			return err
		}
	}
	return nil
}

// router adds a router: its first interface is at the bottleneck, the others are the flows'.
func (r *run) router(s Side, own, other netip.Prefix) (*sim.Host, error) {
	far := s.Other()
	cfg := stack.Config{
		Interfaces: []stack.Interface{{Name: BottleneckFace, Addr: own, MTU: r.x.Path.MTU}},
		Routes:     []stack.Route{{Prefix: far.Prefix(), Via: other.Addr()}},
		Forwarding: true,
	}
	for i := range r.x.Flows {
		cfg.Interfaces = append(cfg.Interfaces, stack.Interface{
			Name: RouterFace(i), MTU: r.x.Path.MTU,
			Addr: netip.PrefixFrom(s.Address(i, RouterNumber), 24),
		})
	}
	return r.world.AddHost(s.Router(), cfg)
}

func (r *run) addFlow(i int) error {
	f := newFlow(r, i)
	left, err := r.host(f, Left, r.net.left)
	if err != nil {
		return err
	}
	right, err := r.host(f, Right, r.net.right)
	if err != nil {
		return err
	}
	f.sender, f.receiver, f.to = left, right, Right
	if f.spec.Upward {
		f.sender, f.receiver, f.to = right, left, Left
	}
	r.flows = append(r.flows, f)
	return nil
}

func (r *run) host(f *flow, s Side, router *sim.Host) (*sim.Host, error) {
	transport, err := f.tcpConfig(s)
	if err != nil {
		return nil, err
	}
	cfg := stack.Config{
		Interfaces: []stack.Interface{{
			Name: HostFace, MTU: r.x.HostMTU(f.spec),
			Addr: netip.PrefixFrom(s.Address(f.index, HostNumber), 24),
		}},
		Routes: []stack.Route{{
			Prefix: netip.PrefixFrom(netip.IPv4Unspecified(), 0),
			Via:    s.Address(f.index, RouterNumber),
		}},
		TCP: transport,
	}
	h, err := r.world.AddHost(s.Host(f.index), cfg)
	if err != nil {
		return nil, err
	}
	sends := r.x.HostLink(f.spec, (s == Left) != f.spec.Upward)
	return h, r.wire(sim.End{Host: h}, sim.End{Host: router, Iface: 1 + f.index}, sends,
		netem.Config{Delay: f.spec.Delay})
}

func (r *run) wire(a, b sim.End, ab, ba netem.Config) error {
	r.net.ends = append(r.net.ends, a, b)
	return r.world.Connect(a, b, ab, ba)
}

// conserve checks that no packet was lost without a word, and none made: what went into each
// wire came out, was dropped, or is inside.
func (r *run) conserve() {
	for _, e := range r.net.ends {
		l := e.Out()
		c := l.Counters()
		inside, _ := l.Inside()
		if c.In+c.Duplicated != c.Out+c.Lost+c.QueueDropped+c.Policed+c.Overflowed+uint64(inside) {
			panic(fmt.Sprintf("BUG: play: a wire of %s: %+v, %d inside", e.Host.Name(), c, inside))
		}
	}
}
