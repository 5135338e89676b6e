package simulation

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// dumbbell is the topology: two routers with the bottleneck between them.
type dumbbell struct {
	left, right *sim.Host
	path        *Path
	ends        []sim.End // the transmitting end of each direction of each link
}

func (r *run) build() error {
	if n := len(r.x.Flows); n == 0 || n > MaxFlows {
		return fmt.Errorf("%d flows: must be 1 to %d", n, MaxFlows)
	}
	near4, far4 := "172.16.0.1", "172.16.0.2"
	if r.x.Path.IPv6 {
		near4, far4 = "fd00::1", "fd00::2"
	}
	own, other := netip.MustParseAddr(near4), netip.MustParseAddr(far4)
	var err error
	if r.net.left, err = r.router(Left, own, other); err != nil {
		return err
	}
	if r.net.right, err = r.router(Right, other, own); err != nil {
		return err
	}
	r.net.path = NewPath(r.x, r.began)
	near, far := sim.End{Host: r.net.left}, sim.End{Host: r.net.right}
	down, up := r.x.Path.Down, r.x.Path.Up
	down.Origin, up.Origin = r.began, r.began // schedules and traces start at this time
	if err := r.connect(near, far, down, up); err != nil {
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

// router adds a router: its first interface is at the bottleneck, the others lead to the flows'
// hosts.
func (r *run) router(s Side, own, other netip.Addr) (*sim.Host, error) {
	mtu := r.x.Path.MTU
	cfg := stack.Config{
		Interfaces: []stack.Interface{face(BottleneckIface, mtu, own, 30)},
		Routes:     []stack.Route{{Prefix: r.prefix(s.Other()), Via: other}},
		Forwarding: true,
	}
	for i := range r.x.Flows {
		cfg.Interfaces = append(cfg.Interfaces,
			face(RouterIface(i), mtu, r.address(s, i, RouterNumber), 24))
	}
	return r.world.AddHost(s.Router(), cfg)
}

func (r *run) addFlow(i int) error {
	f := &flow{spec: &r.x.Flows[i], run: r, index: i}
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
	own := r.address(s, f.index, HostNumber)
	cfg := stack.Config{
		Interfaces: []stack.Interface{face(HostIface, r.x.HostMTU(f.spec), own, 24)},
		Routes: []stack.Route{{
			Prefix: netip.PrefixFrom(own, 0).Masked(),
			Via:    r.address(s, f.index, RouterNumber),
		}},
		TCP: transport,
	}
	h, err := r.world.AddHost(s.Host(f.index), cfg)
	if err != nil {
		return nil, err
	}
	sends := r.x.HostLink(f.spec, (s == Left) != f.spec.Upward)
	return h, r.connect(sim.End{Host: h}, sim.End{Host: router, Iface: 1 + f.index}, sends,
		netem.Config{Delay: f.spec.Delay})
}

func (r *run) connect(a, b sim.End, ab, ba netem.Config) error {
	r.net.ends = append(r.net.ends, a, b)
	return r.world.Connect(a, b, ab, ba)
}

// conserve checks that each packet that entered a link has left the link, was dropped and counted,
// or is still inside.
func (r *run) conserve() {
	for _, e := range r.net.ends {
		l := e.Out()
		c := l.Counters()
		inside, _ := l.Inside()
		if c.In+c.Duplicated != c.Out+c.Lost+c.QueueDropped+c.Policed+c.Overflowed+uint64(inside) {
			panic(fmt.Sprintf("BUG: simulation: %s: %+v, %d inside", e.Host.Name(), c, inside))
		}
	}
}
