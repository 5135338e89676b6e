package convergence

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// network is a graph of routers that run.
type network struct {
	*sim.World
	graph
	dialect rip.Dialect
	hosts   []*sim.Host
	ends    [][2]sim.End // of each wire
	down    []bool       // wires whose ends know that they are cut
	broken  []bool       // wires whose ends do not
	watch   *watch
}

// The wires: so long, and up to as much longer.
const (
	wireDelay  = time.Millisecond
	wireSpread = 4 * time.Millisecond
)

// address is that of an end of a wire, 1 or 2. Four addresses are a wire's: a /30.
func address(wire, end int) netip.Addr {
	n := wire<<2 | end
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// wireOf is the wire that a prefix is of.
func wireOf(p netip.Prefix) int {
	a := p.Addr().As4()
	return (int(a[1])<<16 | int(a[2])<<8 | int(a[3])) >> 2
}

func build(g graph, dialect rip.Dialect, seed uint64) (*network, error) {
	w := &network{
		World: sim.New(seed), graph: g, dialect: dialect,
		ends: make([][2]sim.End, len(g.wires)),
		down: make([]bool, len(g.wires)), broken: make([]bool, len(g.wires)),
	}
	w.watch = newWatch(w)
	configs := make([]stack.Config, g.routers)
	for i, pair := range g.wires {
		for end, r := range pair {
			w.ends[i][end].Iface = len(configs[r].Interfaces)
			w.attach(&configs[r], i, end)
		}
	}
	for r := range configs {
		h, err := w.AddHost(fmt.Sprintf("r%d", r), configs[r])
		if err != nil {
			return nil, err
		}
		w.hosts = append(w.hosts, h)
		h.Stack().RIP().Watch(func(c rip.Change) { w.watch.hear(r, c) })
	}
	delays := w.Rand("delays")
	for i, pair := range g.wires {
		for end, r := range pair {
			w.ends[i][end].Host = w.hosts[r]
		}
		cfg := netem.Config{Delay: wireDelay + time.Duration(delays.Int64N(int64(wireSpread)))}
		if err := w.Connect(w.ends[i][0], w.ends[i][1], cfg, cfg); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *network) attach(c *stack.Config, wire, end int) {
	if c.RIP == nil {
		c.Forwarding = true
		c.RIP = &rip.Config{Dialect: w.dialect, Rand: w.source(wire, end)}
	}
	addr, iface := netip.PrefixFrom(address(wire, 1+end), 30), len(c.Interfaces)
	c.Interfaces = append(c.Interfaces, stack.Interface{
		Name: fmt.Sprintf("if%d", iface), Addr: addr, Neighbors: []netip.Addr{address(wire, 2-end)},
	})
	c.RIP.Interfaces = append(c.RIP.Interfaces, rip.Interface{Addr: addr})
	if w.dialect == rip.Course {
		c.RIP.Neighbors = append(c.RIP.Neighbors,
			rip.Neighbor{Addr: address(wire, 2-end), Iface: iface})
	}
}

// source is a router's random times, named after its first wire.
func (w *network) source(wire, end int) *rand.Rand {
	return w.Rand(fmt.Sprintf("rip %d.%d", wire, end))
}

// setDown cuts a wire so that both ends know, or mends it.
func (w *network) setDown(wire int, down bool) {
	w.down[wire] = down
	for _, e := range w.ends[wire] {
		e.Host.Stack().SetUp(w.Now(), e.Iface, !down)
		e.Cut(down)
	}
	w.watch.local(wire, !down)
	for _, e := range w.ends[wire] {
		e.Host.Settle()
	}
}

// setBroken makes a link lose everything without telling its routers, or repairs it.
func (w *network) setBroken(wire int, broken bool) {
	w.broken[wire] = broken
	for _, e := range w.ends[wire] {
		e.Cut(broken)
	}
}

// own is what a network costs those on it (RFC 2453 §3.9.2 adds the receiver's link).
func (w *network) own() int {
	if w.dialect == rip.RIPv2 {
		return 1
	}
	return 0
}

// right is what every router's cost to every wire's network ought to be.
func (w *network) right() []uint8 {
	neighbors := w.neighbors(func(i int) bool { return !w.down[i] && !w.broken[i] })
	costs := make([]uint8, w.routers*len(w.wires))
	for i, pair := range w.wires {
		row := costs[i*w.routers : (i+1)*w.routers]
		if w.down[i] {
			fill(row, rip.Infinity)
			continue
		}
		for r, d := range distances(neighbors, pair[0], pair[1]) {
			switch {
			case d == unreached || d+w.own() >= rip.Infinity:
				row[r] = rip.Infinity
			case d > 0:
				row[r] = uint8(d + w.own()) //nolint:gosec // below Infinity
			}
		}
	}
	return costs
}

func fill(row []uint8, v uint8) {
	for i := range row {
		row[i] = v
	}
}

func (w *network) effective() rip.Timers { return w.hosts[0].Stack().RIP().Speaker().Timers() }

func (w *network) messages() Messages {
	var m Messages
	for _, h := range w.hosts {
		c := h.Stack().RIP().Speaker().Counters()
		m.Requests += c.RequestsOut
		m.Responses += c.ResponsesOut
		m.Triggered += c.TriggeredOut
		m.Entries += c.EntriesOut
	}
	return m
}
