package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// pfx parses a prefix.
func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// router returns a router with three networks.
func router(t *testing.T) *stack.Stack {
	t.Helper()
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{
			face("if0", "10.0.0.1/24"), face("if1", "10.1.0.1/24"), face("p2p", "10.2.0.0/31"),
		},
		Forwarding: true,
	})
	require.NoError(t, err)
	return s
}

func TestInvalidStaticRoutes(t *testing.T) {
	s := router(t)
	tests := []struct {
		prefix, via string
		want        error
		text        string
	}{
		{"10.9.1.0/16", "10.0.0.2", stack.ErrPrefix, "did you mean 10.9.0.0/16?"},
		{"fd00::/8", "10.0.0.2", stack.ErrNextHop, "must be an address of fd00::/8's family"},
		{"10.9.0.0/16", "10.7.0.2", stack.ErrNextHop, "in no interface's network"},
		{"10.9.0.0/16", "10.0.0.1", stack.ErrNextHop, "it is an address of this node"},
		{"10.9.0.0/16", "127.0.0.1", stack.ErrNextHop, "it is an address of this node"},
		{"10.9.0.0/16", "10.0.0.255", stack.ErrNextHop, "broadcast address"},
		{"10.9.0.0/16", "fd00::1", stack.ErrNextHop, "must be an address of 10.9.0.0/16's family"},
	}
	for _, tt := range tests {
		err := s.Routing().Add(1, stack.Route{Prefix: pfx(tt.prefix), Via: addr(tt.via)})
		require.ErrorIs(t, err, tt.want, "%s via %s", tt.prefix, tt.via)
		assert.ErrorContains(t, err, tt.text)
	}
	require.NoError(t, s.Routing().Add(1, route("10.9.0.0/16", "10.0.0.2")))
	require.ErrorIs(t, s.Routing().Add(1, route("10.9.0.0/16", "10.0.0.2")), stack.ErrRouteExists)
	require.NoError(t, s.Routing().Add(1, route("10.8.0.0/16", "10.2.0.1")), "RFC 3021 §2.1: a /31")
	require.ErrorIs(t, s.Routing().Remove(1, pfx("10.7.0.0/16"), netip.Addr{}), stack.ErrNoSuchRoute)
	require.ErrorIs(t, s.Routing().Remove(1, pfx("10.9.0.0/16"), addr("10.0.0.3")), stack.ErrNoSuchRoute)
	require.ErrorIs(t, s.Routing().Remove(1, pfx("10.0.0.0/24"), netip.Addr{}), stack.ErrNoSuchRoute,
		"an interface's network is no static route")
}

// RFC 1812 §5.2.4.3: the longest prefix wins. Among static routes to the same prefix, the one with
// the smallest metric wins, then the oldest. Routes over interfaces that are down do not count.
func TestStaticRoutesToOnePrefix(t *testing.T) {
	s := router(t)
	via := func() string {
		r, ok := s.Routing().Lookup(addr("10.9.0.7"))
		if !ok {
			return "none"
		}
		return r.NextHop.String()
	}
	add := func(p, hop string, metric int) {
		require.NoError(t, s.Routing().Add(1, stack.Route{Prefix: pfx(p), Via: addr(hop), Metric: metric}))
	}
	add("10.9.0.0/16", "10.0.0.2", 5)
	add("10.9.0.0/16", "10.0.0.3", 5)
	assert.Equal(t, "10.0.0.2", via(), "the first of equal routes stays")
	add("10.9.0.0/16", "10.1.0.2", 1)
	assert.Equal(t, "10.1.0.2", via(), "the route with the smaller metric")
	s.SetUp(1, 1, false)
	assert.Equal(t, "10.0.0.2", via(), "the other route's interface is down")
	s.SetUp(1, 0, false)
	assert.Equal(t, "none", via())
	s.SetUp(1, 1, true)
	assert.Equal(t, "10.1.0.2", via())
	s.SetUp(1, 0, true)
	require.NoError(t, s.Routing().Remove(1, pfx("10.9.0.0/16"), addr("10.1.0.2")))
	assert.Equal(t, "10.0.0.2", via())
	add("10.9.0.7/32", "10.1.0.9", 9)
	assert.Equal(t, "10.1.0.9", via(), "a host route wins whatever its metric")
	require.NoError(t, s.Routing().Remove(1, pfx("10.9.0.7/32"), netip.Addr{}))
	require.NoError(t, s.Routing().Remove(1, pfx("10.9.0.0/16"), netip.Addr{}))
	assert.Equal(t, "none", via(), "all routes are removed")
	add("0.0.0.0/0", "10.2.0.1", 0)
	assert.Equal(t, "10.2.0.1", via(), "the default route")
}

func TestNextHopOnAPointToPointLink(t *testing.T) {
	point := face("if1", "10.1.0.1/32")
	point.Neighbors = []netip.Addr{addr("192.168.5.5")}
	s, err := stack.New(1, stack.Config{
		Interfaces: []stack.Interface{face("if0", "10.0.0.1/24"), point},
		Routes:     []stack.Route{route("0.0.0.0/0", "192.168.5.5")},
	})
	require.NoError(t, err)
	r, ok := s.Routing().Lookup(addr("8.8.8.8"))
	require.True(t, ok)
	assert.Equal(t, 1, r.Iface)
	s.SetUp(1, 1, false)
	_, ok = s.Routing().Lookup(addr("8.8.8.8"))
	assert.False(t, ok)
}

func TestBlackholeAndUnreachableRoutes(t *testing.T) {
	w, a, b, _ := line(t)
	for p, kind := range map[string]ip.Kind{"10.5.0.0/16": ip.Blackhole, "10.6.0.0/16": ip.Unreachable} {
		require.NoError(t, b.Routing().Add(w.now, stack.Route{Prefix: pfx(p), Kind: kind}))
	}
	require.NoError(t, b.Routing().Add(w.now, route("0.0.0.0/0", "10.1.0.9")))
	p := newPinger(t, a)
	require.NoError(t, p.send(w.now, "10.5.0.1", 5, 0, 0))
	require.NoError(t, p.send(w.now, "10.6.0.1", 6, 0, 0))
	w.run(time.Millisecond)
	got := p.take()
	require.Len(t, got, 1, "a blackhole route causes no ICMP error")
	assert.Equal(t, uint16(6), got[0].Seq)
	assert.Equal(t, icmp.TypeUnreachable, got[0].Type)
	assert.Equal(t, icmp.CodeHost, got[0].Code)
	assert.Equal(t, uint64(2), dropsOf(b.Interfaces().Infos()[0].In)[ip.DropBlackhole.String()])
	require.ErrorIs(t, newPinger(t, b).send(w.now, "10.5.0.1", 1, 0, 0), stack.ErrNoRoute)
	_, err := b.TCP().Connect(w.now, addrPort(addr("10.6.0.1"), 80), 0)
	require.Error(t, err)
	require.ErrorIs(t, b.Routing().Add(w.now, stack.Route{Prefix: pfx("10.5.0.0/16"), Kind: ip.Blackhole}),
		stack.ErrRouteExists)
	require.NoError(t, b.Routing().Remove(w.now, pfx("10.5.0.0/16"), netip.Addr{}))
	_, ok := b.Routing().Lookup(addr("10.5.0.1"))
	assert.True(t, ok, "the default route matches again")
}

// RFC 1812 §5.2.7.1: a router reports a packet to a prohibited route with code 13.
func TestProhibitRoute(t *testing.T) {
	w, _, b, _ := line(t)
	require.NoError(t, b.Routing().Add(w.now, stack.Route{Prefix: pfx("10.7.0.0/16"), Kind: ip.Prohibited}))
	_, m := answer(t, ask(w, 1, 0, datagramTo(hostA, ip.V4(10, 7, 0, 1), ip.Header{}, nil)))
	assert.Equal(t, icmp.TypeUnreachable, m.Type)
	assert.Equal(t, icmp.CodeAdminProhibited, m.Code)
	assert.Equal(t, map[string]uint64{"prohibited": 1}, drops(b, 0))
	assert.Equal(t, control.RouteProhibit, b.Routing().Infos()[2].Kind)
}

// chain returns n routers in a row that speak RIP. Router i has 10.i.0.2 and 10.i+1.0.1.
func chain(t *testing.T, n int, originate ...string) (*world, []*stack.Stack) {
	t.Helper()
	w := newWorld(t)
	var list []*stack.Stack
	for i := range n {
		octet := func(net, host int) string {
			return netip.AddrFrom4([4]byte{10, byte(net), 0, byte(host)}).String()
		}
		cfg := stack.Config{
			Interfaces: []stack.Interface{
				face("if0", octet(i, 2)+"/24"), face("if1", octet(i+1, 1)+"/24"),
			},
			Forwarding: true, RIP: &rip.Config{},
		}
		if i > 0 {
			cfg.RIP.Neighbors = append(cfg.RIP.Neighbors, rip.Neighbor{Addr: addr(octet(i, 1)), Iface: 0})
			w.wire(end{i - 1, 1}, end{i, 0})
		} else {
			for _, p := range originate {
				cfg.Originate = append(cfg.Originate, rip.External{Prefix: pfx(p), Iface: -1})
			}
			cfg.Routes = []stack.Route{route("0.0.0.0/0", "10.0.0.9"), route("172.16.0.0/12", "10.0.0.8")}
		}
		if i < n-1 {
			cfg.RIP.Neighbors = append(cfg.RIP.Neighbors, rip.Neighbor{Addr: addr(octet(i+1, 2)), Iface: 1})
		}
		list = append(list, w.add(cfg))
	}
	return w, list
}

// RFC 2453 §3.7: a router may announce a default route, and others propagate it like any route. A
// router announces static routes only if the file says so.
func TestStaticRoutesAreOriginatedIntoRIP(t *testing.T) {
	w, r := chain(t, 4, "0.0.0.0/0", "172.16.0.0/12", "192.168.0.0/16")
	w.run(time.Second)
	cost := func(i int, to string) int {
		got, ok := r[i].Routing().Lookup(addr(to))
		if !ok || got.Origin != ip.RIP {
			return -1
		}
		return got.Cost
	}
	assert.Equal(t, 3, cost(3, "8.8.8.8"), "the default route, three hops away")
	assert.Equal(t, 3, cost(3, "172.20.0.1"))
	got, _ := r[3].Routing().Lookup(addr("8.8.8.8"))
	assert.Equal(t, pfx("0.0.0.0/0"), got.Prefix)
	assert.Equal(t, addr("10.3.0.1"), got.NextHop)
	got, _ = r[3].Routing().Lookup(addr("192.168.7.7"))
	assert.Equal(t, pfx("192.168.0.0/16"), got.Prefix, "the static route is propagated")
	mine, _ := r[0].Routing().Lookup(addr("8.8.8.8"))
	assert.Equal(t, ip.Static, mine.Origin)

	t.Log("# the static routes are withdrawn while their link is down")
	r[0].SetUp(w.now, 0, false)
	w.run(time.Second)
	assert.Equal(t, -1, cost(3, "8.8.8.8"))
	assert.Equal(t, -1, cost(3, "172.20.0.1"))
	r[0].SetUp(w.now, 0, true)
	w.run(time.Second)
	assert.Equal(t, 3, cost(3, "8.8.8.8"))
	require.NoError(t, r[0].Routing().Remove(w.now, pfx("172.16.0.0/12"), netip.Addr{}))
	w.run(time.Second)
	got, _ = r[3].Routing().Lookup(addr("172.20.0.1"))
	assert.Equal(t, pfx("0.0.0.0/0"), got.Prefix, "withdrawn with the operator's route")

	t.Log("# other static routes are not announced")
	require.NoError(t, r[0].Routing().Add(w.now, route("172.31.0.0/16", "10.0.0.8")))
	w.run(10 * time.Second)
	got, _ = r[3].Routing().Lookup(addr("172.31.0.1"))
	assert.Equal(t, pfx("0.0.0.0/0"), got.Prefix)
}

// A router that stops withdraws its routes, so that its neighbors do not wait for them to time
// out.
func TestWithdrawOnShutdown(t *testing.T) {
	w, r := chain(t, 3, "0.0.0.0/0")
	w.run(time.Second)
	_, ok := r[2].Routing().Lookup(addr("8.8.8.8"))
	require.True(t, ok)
	r[0].RIPs()[0].Withdraw(w.now)
	w.run(10 * time.Millisecond)
	_, ok = r[2].Routing().Lookup(addr("8.8.8.8"))
	assert.False(t, ok)
	_, ok = r[1].Routing().Lookup(addr("8.8.8.8"))
	assert.False(t, ok)
}

func TestStaticRouteOverridesRIP(t *testing.T) {
	w, r := chain(t, 3, "0.0.0.0/0")
	w.run(time.Second)
	origin := func() ip.Origin {
		got, ok := r[2].Routing().Lookup(addr("8.8.8.8"))
		require.True(t, ok)
		return got.Origin
	}
	require.Equal(t, ip.RIP, origin())
	require.NoError(t, r[2].Routing().Add(w.now, route("0.0.0.0/0", "10.3.0.9")))
	assert.Equal(t, ip.Static, origin())
	w.run(20 * time.Second)
	assert.Equal(t, ip.Static, origin(), "the static route wins over RIP's")
	r[2].SetUp(w.now, 1, false)
	assert.Equal(t, ip.RIP, origin(), "the static route's interface is down: the learned route remains")
	r[2].SetUp(w.now, 1, true)
	assert.Equal(t, ip.Static, origin())
	require.NoError(t, r[2].Routing().Remove(w.now, pfx("0.0.0.0/0"), netip.Addr{}))
	assert.Equal(t, ip.RIP, origin())
}

// RFC 1122 §3.3.4.3: the default source address is that of the outgoing interface. RFC 1122
// §3.3.4.2: in the weak host model a program may choose any address of the node.
func TestSourceAddressIsTheOutgoingInterfaces(t *testing.T) {
	w, a, b, c := line(t)
	fromA, fromB := newPinger(t, a), newPinger(t, b)
	require.NoError(t, fromB.send(w.now, "10.0.0.1", 1, 0, 0))
	require.NoError(t, fromB.send(w.now, "10.1.0.2", 2, 0, 0))
	toA, err := b.DialTCP(w.now, netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.1:80"))
	require.NoError(t, err)
	assert.Equal(t, ip.V4(10, 0, 0, 2), toA.Tuple().LocalAddr)
	toC, err := b.DialTCP(w.now, netip.MustParseAddrPort("10.0.0.2:0"), netip.MustParseAddrPort("10.1.0.2:80"))
	require.NoError(t, err)
	assert.Equal(t, ip.V4(10, 0, 0, 2), toC.Tuple().LocalAddr, "the chosen address, of the other interface")
	u, err := b.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("10.1.0.2:9"))
	require.NoError(t, err)
	assert.Equal(t, addr("10.1.0.1"), u.Local().Addr())
	open, server := bindUDP(t, b, "0.0.0.0:7"), bindUDP(t, c, "0.0.0.0:7")
	require.NoError(t, b.Datagrams().Send(w.now, open, netip.MustParseAddrPort("10.1.0.2:7"), []byte("x")))
	w.run(time.Millisecond)
	assert.Equal(t, "10.1.0.1:7 x", read(server))
	require.Len(t, fromB.take(), 2, "both echo replies reach the source")

	t.Log("# a router is reached by the address of its other interface")
	require.NoError(t, fromA.send(w.now, "10.1.0.1", 3, 0, 0))
	w.run(time.Millisecond)
	require.Len(t, fromA.take(), 1)
	b.SetUp(w.now, 1, false)
	require.NoError(t, fromA.send(w.now, "10.1.0.1", 4, 0, 0))
	w.run(time.Millisecond)
	require.Len(t, fromA.take(), 1, "even while that interface is down")
	require.NoError(t, fromB.send(w.now, "10.1.0.1", 5, 0, 0))
	w.run(time.Millisecond)
	require.Len(t, fromB.take(), 1, "the node answers itself")
}

// RFC 1122 §3.2.1.3 (g): addresses of 127/8 are the node's own and never appear on a link.
func TestLoopbackStaysInside(t *testing.T) {
	w, a, b, _ := line(t)
	p := newPinger(t, a)
	require.NoError(t, p.send(w.now, "127.0.0.1", 1, 0, 0))
	u := bindUDP(t, a, "127.0.0.1:7")
	require.NoError(t, a.Datagrams().Send(w.now, u, netip.MustParseAddrPort("127.0.0.1:7"), []byte("x")))
	l, err := a.ListenTCP(netip.MustParseAddrPort("127.0.0.1:80"), 1)
	require.NoError(t, err)
	_, err = a.DialTCP(w.now, netip.AddrPort{}, netip.MustParseAddrPort("127.0.0.1:80"))
	require.NoError(t, err)
	w.run(10 * time.Millisecond)
	require.Len(t, p.take(), 1, "the echo is answered")
	assert.Equal(t, "127.0.0.1:7 x", read(u))
	_, ok := l.Accept()
	assert.True(t, ok, "the connection was accepted")
	assert.Zero(t, a.Interfaces().Infos()[0].Out.Packets, "nothing left the node")

	require.ErrorIs(t, a.Datagrams().Send(w.now, u, netip.MustParseAddrPort("10.0.0.2:7"), nil), stack.ErrNoRoute)
	_, err = a.DialTCP(w.now, netip.MustParseAddrPort("127.0.0.1:0"), netip.MustParseAddrPort("10.0.0.2:80"))
	require.ErrorIs(t, err, stack.ErrNoRoute)
	for _, p := range [][]byte{
		packetTo(ip.V4(10, 0, 0, 1), ip.V4(127, 0, 0, 1)),
		packetTo(ip.V4(127, 0, 0, 1), ip.V4(10, 1, 0, 2)),
	} {
		input(b, w.now, buffer.Frame{Data: p, Size: len(p)})
	}
	assert.Equal(t, uint64(2), dropsOf(b.Interfaces().Infos()[0].In)[ip.DropMartian.String()])
	assert.Empty(t, b.Events())
}
