package convergence

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// network is a running network of routers.
type network struct {
	*sim.World
	graph
	dialects []rip.Dialect // only the first dialect is watched
	hosts    []*sim.Host
	ends     [][2]sim.End // both ends of each link
	down     []bool       // links that are down, which both ends know
	broken   []bool       // links that lose all packets, which their ends do not notice
	observer *observer
}

// These are the delay of links, and the random part of it.
const (
	linkDelay  = time.Millisecond
	linkSpread = 4 * time.Millisecond
)

// address returns the address of an end of a link, 1 or 2. Each link has a /30.
func address(link, end int) netip.Addr {
	n := link<<2 | end
	return netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)})
}

// address6 is like address, for IPv6. Each link has a /64.
func address6(link, end int) netip.Addr {
	return netip.AddrFrom16([16]byte{
		0x20, 1, 0xd, 0xb8, 5: byte(link >> 16), 6: byte(link >> 8), 7: byte(link), 15: byte(end),
	})
}

func linkOf(p netip.Prefix) int {
	if a := p.Addr(); a.Is6() {
		return int(binary.BigEndian.Uint32(a.AsSlice()[4:]))
	}
	a := p.Addr().As4()
	return (int(a[1])<<16 | int(a[2])<<8 | int(a[3])) >> 2
}

func build(g graph, seed uint64, dialects ...rip.Dialect) (*network, error) {
	w := &network{
		World: sim.New(seed), graph: g, dialects: dialects,
		ends: make([][2]sim.End, len(g.links)),
		down: make([]bool, len(g.links)), broken: make([]bool, len(g.links)),
	}
	w.observer = newObserver(w)
	configs := make([]stack.Config, g.routers)
	for i, pair := range g.links {
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
		h.Stack().RIPs()[0].Watch(func(c rip.Change) { w.observer.routeChanged(r, c) })
	}
	delays := w.Rand("delays")
	for i, pair := range g.links {
		for end, r := range pair {
			w.ends[i][end].Host = w.hosts[r]
		}
		cfg := netem.Config{Delay: linkDelay + time.Duration(delays.Int64N(int64(linkSpread)))}
		if err := w.Connect(w.ends[i][0], w.ends[i][1], cfg, cfg); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *network) attach(c *stack.Config, link, end int) {
	iface := len(c.Interfaces)
	f := stack.Interface{Name: fmt.Sprintf("if%d", iface)}
	for _, dialect := range w.dialects {
		own := &c.RIP
		if dialect == rip.RIPng {
			own = &c.RIPng
			f.IPv6 = []netip.Prefix{netip.PrefixFrom(address6(link, 1+end), 64)}
			f.Neighbors = append(f.Neighbors, address6(link, 2-end))
		} else {
			f.Addr = netip.PrefixFrom(address(link, 1+end), 30)
			f.Neighbors = append(f.Neighbors, address(link, 2-end))
		}
		if iface == 0 {
			c.Forwarding = true
			rng := w.Rand(fmt.Sprintf("rip %d.%d", link, end)) // source of random times
			*own = &rip.Config{Dialect: dialect, Rand: rng}
		}
		if dialect == rip.Course {
			(*own).Neighbors = append((*own).Neighbors,
				rip.Neighbor{Addr: address(link, 2-end), Iface: iface})
		}
	}
	c.Interfaces = append(c.Interfaces, f)
}

// setDown cuts a link so that both ends notice, or repairs it.
func (w *network) setDown(link int, down bool) {
	w.down[link] = down
	for _, e := range w.ends[link] {
		e.Host.Stack().SetUp(w.Now(), e.Iface, !down)
		e.Cut(down)
	}
	w.observer.local(link, !down)
	for _, e := range w.ends[link] {
		e.Host.Settle()
	}
}

// setBroken makes a link lose all packets without its routers noticing, or repairs it.
func (w *network) setBroken(link int, broken bool) {
	w.broken[link] = broken
	for _, e := range w.ends[link] {
		e.Cut(broken)
	}
}

// own returns the cost that routers advertise for an attached network. The receiver adds the cost
// of its link (RFC 2453 §3.9.2, RFC 2080 §2.4.2).
func (w *network) own() int {
	if w.dialects[0] == rip.Course {
		return 0
	}
	return 1
}

// right returns the right cost of every link's network at every router.
func (w *network) right() []uint8 {
	neighbors := w.neighbors(func(i int) bool { return !w.down[i] && !w.broken[i] })
	costs := make([]uint8, w.routers*len(w.links))
	for i, pair := range w.links {
		row := costs[i*w.routers : (i+1)*w.routers]
		if w.down[i] {
			copy(row, bytes.Repeat([]byte{rip.Infinity}, len(row)))
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

func (w *network) effective() rip.Timers { return w.hosts[0].Stack().RIPs()[0].Speaker().Timers() }

func (w *network) messages() Messages {
	var m Messages
	for _, h := range w.hosts {
		c := h.Stack().RIPs()[0].Speaker().Counters()
		m.Requests += c.RequestsOut
		m.Responses += c.ResponsesOut
		m.Triggered += c.TriggeredOut
		m.Entries += c.EntriesOut
	}
	return m
}
