package emulation

import (
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// dumbbell has the links of the topology that internal/lab/simulation builds: the links of each
// flow's two hosts in both directions, and the bottleneck. There are no routers, because routers
// take no time. A link processes each event with the time at which it was due, even if it is called
// late. So a process that wakes up late delays its output, but changes nothing else.
type dumbbell struct {
	links    []*hop
	down, up *hop
	access   [][2]*hop // links by flow: from the left and from the right host
	egress   [][2]*hop // links by flow: to the left and to the right host
	flows    int
	// out is called with a packet for a host, and the time at which it was due there.
	out func(flow int, right bool, due clock.Time, packet []byte)
}

// hop is a link with the next hop of its packets.
type hop struct {
	link *netem.Link
	to   func(at clock.Time, packet []byte)
}

func newDumbbell(x *plan.Experiment, seed uint64, began clock.Time) (*dumbbell, error) {
	w := &dumbbell{flows: len(x.Flows)}
	near := simulation.Left.Router() + ":" + simulation.BottleneckIface
	far := simulation.Right.Router() + ":" + simulation.BottleneckIface
	var err error
	link := func(cfg netem.Config, from, to string, next func(clock.Time, []byte)) *hop {
		if err != nil {
			return nil
		}
		cfg.Origin = began
		var l *netem.Link
		if l, err = netem.New(cfg, sim.LinkStreams(seed, from, to)); err != nil {
			return nil
		}
		one := &hop{link: l, to: next}
		w.links = append(w.links, one)
		return one
	}
	w.down = link(x.Path.Down, near, far, w.crossed)
	w.up = link(x.Path.Up, far, near, w.crossed)
	for i := range x.Flows {
		var access, egress [2]*hop
		for k, side := range []simulation.Side{simulation.Left, simulation.Right} {
			bottleneck := []*hop{w.down, w.up}[k]
			host := side.Host(i) + ":" + simulation.HostIface
			router := side.Router() + ":" + simulation.RouterIface(i)
			sends := x.HostLink(&x.Flows[i], (side == simulation.Left) != x.Flows[i].Upward)
			access[k] = link(sends, host, router, func(at clock.Time, p []byte) {
				bottleneck.link.Input(at, 0, [][]byte{p})
			})
			egress[k] = link(netem.Config{Delay: x.Flows[i].Delay}, router, host,
				func(at clock.Time, p []byte) { w.out(i, k == 1, at, p) })
		}
		w.access, w.egress = append(w.access, access), append(w.egress, egress)
	}
	if err != nil {
		return nil, fmt.Errorf("the path: %w", err)
	}
	return w, nil
}

func (w *dumbbell) send(now clock.Time, flow int, right bool, packet []byte) {
	k := 0
	if right {
		k = 1
	}
	w.access[flow][k].link.Input(now, 0, [][]byte{packet})
}

// crossed passes a packet from the bottleneck to its destination. Like a router, it drops a
// corrupted packet without a valid destination.
func (w *dumbbell) crossed(at clock.Time, packet []byte) {
	const target, addressEnd = 16, 20
	if len(packet) < addressEnd {
		return
	}
	to := netip.AddrFrom4([4]byte(packet[target:addressEnd]))
	flow, side, ok := simulation.WhoseAddress(to)
	if !ok || flow >= w.flows {
		return
	}
	k := 0
	if side == simulation.Right {
		k = 1
	}
	w.egress[flow][k].link.Input(at, 0, [][]byte{packet})
}

func (w *dumbbell) advance(now clock.Time) {
	for {
		next, due := w.next()
		if next == nil || !due.Due(now) {
			return
		}
		next.link.Advance(due)
		if packet, _, ok := next.link.Output(due); ok {
			next.to(due, packet)
		}
	}
}

// next returns the link with the earliest deadline; nil if no link has one.
func (w *dumbbell) next() (first *hop, due clock.Time) {
	for _, l := range w.links {
		if at := l.link.Deadline(); at != clock.Never && (first == nil || at < due) {
			first, due = l, at
		}
	}
	return first, due
}
