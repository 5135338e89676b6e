package rip_test

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// network is a few Speakers, the links between them, and virtual time.
type network struct {
	tb      testing.TB
	now     clock.Time
	delay   time.Duration // delay of every link
	routers []*router
	wires   []*wire
	flying  flight
	sent    int // messages sent on a link
	settled clock.Time
	log     uint64 // hash of all sent messages, in order
	udp     uint16 // source port of messages; 0 in the course's dialect
	own     int    // cost at which a router announces its own network
	keys    []rip.Key
	lose    func(from, to *router, payload []byte) bool
}

// router is a Speaker with its ports and its routing table.
type router struct {
	id      int
	speaker *rip.Speaker
	ports   []port
	routes  map[netip.Prefix]rip.Change
}

// port is one end of a link.
type port struct {
	wire *wire
	addr netip.Addr
	peer *router
}

// wire is the link between two routers, with its own network.
type wire struct {
	a, b   *router
	prefix netip.Prefix
	broken bool // all messages are lost without an error
	down   bool // both ends know that the link is down
}

func (w *wire) end(r *router) int {
	return slices.IndexFunc(r.ports, func(p port) bool { return p.wire == w })
}

// inFlight is a message in flight.
type inFlight struct {
	at      clock.Time
	seq     int
	to      *router
	from    netip.Addr
	iface   int
	payload []byte
	wire    *wire
}

type flight []inFlight

func (f flight) Len() int { return len(f) }
func (f flight) Less(i, j int) bool {
	return f[i].at < f[j].at || f[i].at == f[j].at && f[i].seq < f[j].seq
}
func (f flight) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *flight) Push(x any)   { *f = append(*f, x.(inFlight)) }
func (f *flight) Pop() any {
	last := len(*f) - 1
	p := (*f)[last]
	*f = (*f)[:last]
	return p
}

// newNetwork builds n routers and a link for each pair. The network of link i is
// 10.i/256.i%256.0/24.
func newNetwork(tb testing.TB, n int, pairs [][2]int, cfg rip.Config) *network {
	tb.Helper()
	return (&network{tb: tb, now: 1, delay: time.Millisecond}).make(n, pairs, cfg)
}

// make is like newNetwork, for a network that is prepared in part.
func (w *network) make(n int, pairs [][2]int, cfg rip.Config) *network {
	tb := w.tb
	tb.Helper()
	for id := range n {
		w.routers = append(w.routers, &router{id: id, routes: map[netip.Prefix]rip.Change{}})
	}
	for i, p := range pairs {
		a, b := w.routers[p[0]], w.routers[p[1]]
		at := func(host byte) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), host}) }
		bits := 24
		if cfg.Dialect == rip.RIPng {
			at = func(host byte) netip.Addr {
				if host == 0 {
					return netip.MustParseAddr(fmt.Sprintf("2001:db8:%x::", i))
				}
				return netip.MustParseAddr(fmt.Sprintf("fe80::%x:%x", i, host))
			}
			bits = 64
		}
		x := &wire{a: a, b: b, prefix: netip.PrefixFrom(at(0), bits)}
		a.ports = append(a.ports, port{x, at(1), b})
		b.ports = append(b.ports, port{x, at(2), a})
		w.wires = append(w.wires, x)
	}
	switch cfg.Dialect {
	case rip.Course:
	case rip.RIPv2:
		w.udp, w.own = rip.Port, 1
	case rip.RIPng:
		w.udp, w.own = rip.PortNG, 1
	}
	for _, r := range w.routers {
		cfg.Neighbors, cfg.Interfaces = nil, nil
		cfg.Rand = rand.New(rand.NewPCG(7, uint64(r.id)))
		for i, p := range r.ports {
			if cfg.Dialect != rip.Course {
				f := rip.Interface{Addr: netip.PrefixFrom(p.addr, p.wire.prefix.Bits()), Keys: w.keys}
				cfg.Interfaces = append(cfg.Interfaces, f)
				continue
			}
			far := p.peer.ports[p.wire.end(p.peer)].addr
			cfg.Neighbors = append(cfg.Neighbors, rip.Neighbor{Addr: far, Iface: i})
		}
		var err error
		r.speaker, err = rip.NewSpeaker(cfg)
		require.NoError(tb, err)
		for i, p := range r.ports {
			r.speaker.SetLocal(w.now, p.wire.prefix, i, true)
		}
	}
	return w
}

func (w *network) start() {
	for _, r := range w.routers {
		r.speaker.Start(w.now)
		w.drain(r)
	}
}

// drain does what a Speaker's owner does after every call.
func (w *network) drain(r *router) {
	for c, ok := r.speaker.NextChange(); ok; c, ok = r.speaker.NextChange() {
		w.settled = w.now
		if c.Gone {
			require.Contains(w.tb, r.routes, c.Prefix, "a removed route was installed")
			delete(r.routes, c.Prefix)
		} else {
			r.routes[c.Prefix] = c
		}
	}
	var m rip.Message
	for r.speaker.Output(w.now, &m) {
		p := r.ports[m.Iface]
		require.False(w.tb, p.wire.down, "sent to an interface that is down")
		require.LessOrEqual(w.tb, len(m.Payload), 1280-48)
		require.Equal(w.tb, w.udp, m.Port)
		w.sent++
		w.record(r, m)
		if p.wire.broken || w.lose != nil && w.lose(r, p.peer, m.Payload) {
			continue
		}
		heap.Push(&w.flying, inFlight{
			at: w.now.Add(w.delay), seq: w.sent, to: p.peer, from: p.addr,
			iface: p.wire.end(p.peer), payload: slices.Clone(m.Payload), wire: p.wire,
		})
	}
}

func (w *network) record(r *router, m rip.Message) {
	h := fnv.New64a()
	fmt.Fprint(h, w.log, w.now, r.id, m.To, m.Iface, m.Payload)
	w.log = h.Sum64()
}

// run advances the time by d.
func (w *network) run(d time.Duration) {
	until := w.now.Add(d)
	for {
		next := until
		if len(w.flying) > 0 {
			next = min(next, w.flying[0].at)
		}
		var due *router
		for _, r := range w.routers {
			if t := r.speaker.Deadline(); t != clock.Never && t < next {
				next, due = t, r
			}
		}
		w.now = max(w.now, next)
		switch {
		case due != nil:
			due.speaker.Advance(w.now)
			w.drain(due)
		case len(w.flying) > 0 && w.flying[0].at == next && next < until:
			p := heap.Pop(&w.flying).(inFlight)
			if !p.wire.down && !p.wire.broken {
				from := netip.AddrPortFrom(p.from, w.udp)
				require.Equal(w.tb, rip.Accepted, p.to.speaker.Input(w.now, from, p.iface,
					p.payload))
				w.drain(p.to)
			}
		default:
			return
		}
	}
}

// setDown sets both ends of link i down or up.
func (w *network) setDown(i int, down bool) {
	x := w.wires[i]
	x.down = down
	for _, r := range []*router{x.a, x.b} {
		r.speaker.SetLocal(w.now, x.prefix, x.end(r), !down)
		w.drain(r)
	}
}

// hops follows the routing tables from a router to a network. It returns -1 if a router on the path
// has no route, and -2 if the packet loops.
func (w *network) hops(from *router, to netip.Prefix) int {
	r := from
	for n := range len(w.routers) + 1 {
		for _, p := range r.ports {
			if p.wire.prefix == to && !p.wire.down {
				return n
			}
		}
		c, ok := r.routes[to]
		if !ok {
			return -1
		}
		p := r.ports[c.Iface]
		require.Equal(w.tb, p.peer.ports[p.wire.end(p.peer)].addr, c.NextHop)
		if p.wire.down || p.wire.broken {
			return -1
		}
		r = p.peer
	}
	return -2
}

// nearest returns the distance of each router from a link's network. It is -1 if the network is
// unreachable.
func (w *network) nearest(x *wire) []int {
	far := make([]int, len(w.routers))
	for i := range far {
		far[i] = -1
	}
	if x.down {
		return far
	}
	far[x.a.id], far[x.b.id] = 0, 0
	queue := []*router{x.a, x.b}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		for _, p := range r.ports {
			if !p.wire.down && !p.wire.broken && far[p.peer.id] < 0 && far[r.id]+1+w.own < rip.Infinity {
				far[p.peer.id] = far[r.id] + 1
				queue = append(queue, p.peer)
			}
		}
	}
	return far
}

// wrongRoutes lists each pair of a router and a network whose route is not a shortest path.
func (w *network) wrongRoutes() string {
	var b strings.Builder
	for _, x := range w.wires {
		want := w.nearest(x)
		for i, r := range w.routers {
			if got := w.hops(r, x.prefix); got != want[i] {
				fmt.Fprintf(&b, "router %d to %v: %d hops, want %d\n", i, x.prefix, got, want[i])
			} else if c, ok := r.routes[x.prefix]; ok && c.Cost != got+w.own {
				fmt.Fprintf(&b, "router %d to %v: cost %d over %d hops\n", i, x.prefix, c.Cost, got)
			}
		}
	}
	return b.String()
}

// loops counts the pairs of a router and a network whose path is a loop.
func (w *network) loops() (n int) {
	for _, x := range w.wires {
		for _, r := range w.routers {
			if w.hops(r, x.prefix) == -2 {
				n++
			}
		}
	}
	return n
}

func line(n int) (pairs [][2]int) {
	for i := range n - 1 {
		pairs = append(pairs, [2]int{i, i + 1})
	}
	return pairs
}

func ring(n int) [][2]int { return append(line(n), [2]int{n - 1, 0}) }

func grid(side int) (pairs [][2]int) {
	for i := range side * side {
		if i%side < side-1 {
			pairs = append(pairs, [2]int{i, i + 1})
		}
		if i/side < side-1 {
			pairs = append(pairs, [2]int{i, i + side})
		}
	}
	return pairs
}
