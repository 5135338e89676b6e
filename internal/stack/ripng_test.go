package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// both returns the configuration of a router that runs RIPv2 and RIPng on dual-stack interfaces.
func both(faces ...stack.Interface) stack.Config {
	cfg := speaker(faces...)
	cfg.RIPng = &rip.Config{Dialect: rip.RIPng}
	return cfg
}

func dual(name, v4, v6 string) stack.Interface {
	f := face6(name, v6)
	f.Addr = pfx(v4)
	return f
}

// learned returns the next hop and interface of each route from RIP, by prefix.
func learned(s *stack.Stack) map[string]string {
	routes := map[string]string{}
	for _, r := range s.Routing().Infos() {
		if r.Origin == "R" {
			routes[r.Prefix.String()] = r.NextHop.String() + " " + r.Iface
		}
	}
	return routes
}

// dualLine is a line of three routers that run both protocols.
func dualLine(t *testing.T) (w *world, a, b, c *stack.Stack) {
	t.Helper()
	w = newWorld(t)
	left := both(dual("if0", "10.0.0.1/24", "2001:db8:0::1/64"), dual("if1", "10.7.0.1/24", "2001:db8:7::1/64"))
	left.Routes = []stack.Route{route("2001:db8:f::/48", "2001:db8:7::2"), route("172.16.0.0/12", "10.7.0.2")}
	left.Redistribute = &rip.External{Tag: 5, Metric: 3}
	left.Originate = []rip.External{{Prefix: pfx("::/0"), Iface: -1}, {Prefix: pfx("0.0.0.0/0"), Iface: -1}}
	a = w.add(left)
	b = w.add(both(dual("if0", "10.0.0.2/24", "2001:db8:0::2/64"), dual("if1", "10.1.0.1/24", "2001:db8:1::1/64")))
	c = w.add(both(dual("if0", "10.1.0.2/24", "2001:db8:1::2/64"), face6("if1", "2001:db8:9::1/64", "2001:db8:a::1/64")))
	w.wire(end{0, 0}, end{1, 0})
	w.wire(end{1, 1}, end{2, 0})
	return w, a, b, c
}

// Each protocol announces the networks, the static routes and the originated prefixes of its
// family. RFC 2080 §2.1.1: next hops are link-local addresses. RFC 2080 §2.1: announcements contain
// prefixes with their length, and no link-local prefixes. RFC 2080 §2.5.2: messages go to ff02::9
// from port 521 and a link-local address, with hop limit 255.
func TestRIPv2AndRIPngOnTheSameRouters(t *testing.T) {
	w, a, b, c := dualLine(t)
	seen := map[netip.Addr]int{}
	b.SetTap(func(_ clock.Time, i int, dir stack.Direction, _ ip.DropReason, pieces [][]byte) {
		h, _, _ := ip.ParseHeader(pieces[0])
		if h.Is6() {
			h.Walk(pieces[0])
			u, _, _ := udp.ParseHeader(pieces[0][h.Len:])
			assert.Equal(t, [2]uint16{521, 521}, [2]uint16{u.SrcPort, u.DstPort}, "%v", h)
			assert.Equal(t, uint8(255), h.TTL)
			assert.True(t, h.Src.IsLinkLocalUnicast(), "%v", h.Src)
		}
		if dir == stack.Outbound {
			seen[h.Dst]++
		}
	})
	w.run(time.Minute)
	assert.Greater(t, seen[rip.MulticastNG], 4)
	assert.Greater(t, seen[rip.Multicast], 4)
	b.SetTap(nil)
	assert.Equal(t, map[string]string{
		"0.0.0.0/0": "10.0.0.1 if0", "10.7.0.0/24": "10.0.0.1 if0", "172.16.0.0/12": "10.0.0.1 if0",
		"::/0": "fe80::1 if0", "2001:db8:7::/64": "fe80::1 if0", "2001:db8:f::/48": "fe80::1 if0",
		"2001:db8:9::/64": "fe80::2 if1", "2001:db8:a::/64": "fe80::2 if1",
	}, learned(b))
	assert.Equal(t, "fe80::1 if0", learned(c)["2001:db8:7::/64"])
	assert.Equal(t, "fe80::2 if0", learned(a)["2001:db8:9::/64"])
	for i, dialect := range []string{"rip2", "ripng"} {
		info := b.RIPs()[i].Info(w.now)
		assert.Equal(t, dialect, info.Dialect)
		assert.Len(t, info.Interfaces, 2)
		assert.Len(t, info.Neighbors, 2)
		assert.Empty(t, info.Refused)
	}
	require.Len(t, c.RIPs()[0].Info(w.now).Interfaces, 1, "if1 has no IPv4 address")

	t.Log("# packets cross both routers")
	server := bindUDP(t, c, "[2001:db8:9::1]:53")
	client, err := a.Datagrams().Dial(netip.AddrPort{}, server.Local())
	require.NoError(t, err)
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, []byte("question")))
	w.run(time.Millisecond)
	assert.Equal(t, client.Local().String()+" question", read(server))

	t.Log("# an interface goes down: its networks are withdrawn in both families at once")
	a.SetUp(w.now, 1, false)
	w.run(6 * time.Second)
	assert.Equal(t, map[string]string{
		"0.0.0.0/0": "10.0.0.1 if0", "::/0": "fe80::1 if0",
		"2001:db8:9::/64": "fe80::2 if1", "2001:db8:a::/64": "fe80::2 if1",
	}, learned(b))

	t.Log("# a neighbor is lost: RIPng loses the routes of its link-local address")
	for _, r := range b.RIPs() {
		r.NeighborLost(w.now, 1, addr("2001:db8:1::2"))
	}
	assert.NotContains(t, learned(b), "2001:db8:9::/64")
	for _, r := range b.RIPs() {
		r.NeighborFound(1, addr("2001:db8:1::2"))
	}
	w.run(time.Second) // the next update is due after 25 s or more
	assert.Contains(t, learned(b), "2001:db8:9::/64")

	t.Log("# a restart keeps the routes; Withdraw removes them")
	for _, r := range b.RIPs() {
		require.NoError(t, r.Restart(w.now, both()))
	}
	w.drain(1)
	assert.Contains(t, learned(b), "2001:db8:9::/64")
	w.run(time.Second)
	for _, r := range c.RIPs() {
		r.Withdraw(w.now)
	}
	w.drain(2)
	w.run(time.Millisecond)
	assert.NotContains(t, learned(b), "2001:db8:9::/64")
}

// Routes from a router that stops sending expire after the timeout (RFC 2080 §2.3).
func TestRIPngRoutesExpire(t *testing.T) {
	w, _, b, _ := dualLine(t)
	w.run(time.Minute)
	require.Contains(t, learned(b), "2001:db8:9::/64")
	delete(w.wires, end{2, 0})
	w.run(3 * time.Minute)
	assert.NotContains(t, learned(b), "2001:db8:9::/64")
	assert.NotContains(t, learned(b), "2001:db8:a::/64")
	assert.Contains(t, learned(b), "2001:db8:7::/64", "the other neighbor's routes stay")
}

// RFC 2080 §2.4.2: messages from RIPng's port must have a hop limit of 255, and responses must come
// from that port and from a link-local address. RFC 8200 §8.1: a checksum of zero is wrong. Sockets
// cannot bind the port.
func TestRIPngRefuses(t *testing.T) {
	w := newWorld(t)
	cfg := stack.Config{
		Interfaces: []stack.Interface{face6("if0", "2001:db8::1/64")}, Forwarding: true,
		RIPng: &rip.Config{Dialect: rip.RIPng},
	}
	s := w.add(cfg)
	_, err := s.Datagrams().Bind(netip.MustParseAddrPort("[::]:521"))
	require.ErrorIs(t, err, udp.ErrPortInUse)
	message := append([]byte{2, 1, 0, 0}, addr("2001:db8:5::").AsSlice()...)
	message = append(message, 0, 0, 48, 1)
	send := func(src, dst string, from uint16, ttl, spoil uint8) {
		p := udp.Header{SrcPort: from, DstPort: rip.PortNG}.Append(nil, addr(src), addr(dst), message)
		if p[6] ^= spoil; spoil == 0xff {
			p[6], p[7] = 0, 0
		}
		b := packet6(src, dst, ip.Header{Protocol: ip.ProtoUDP, TTL: ttl}, p)
		input(s, w.now, buffer.Frame{Data: b, Size: len(b)})
	}
	send("fe80::2", "ff02::9", 521, 254, 0)
	send("fe80::2", "ff02::9", 522, 255, 0)
	send("2001:db8::2", "2001:db8::1", 521, 255, 0)
	send("fe80::2", "ff02::9", 521, 255, 1)
	send("fe80::2", "ff02::9", 521, 255, 0xff)
	assert.Equal(t, map[string]uint64{ip.DropRIP.String(): 3, ip.DropUDPChecksum.String(): 2}, drops(s, 0))
	var reasons []string
	for _, r := range s.RIPs()[0].Info(w.now).Refused {
		reasons = append(reasons, r.Reason)
	}
	assert.Equal(t, []string{
		"from an address that is not on the link", "response not from RIP's port", "hop limit below 255",
	}, reasons)
	assert.Empty(t, learned(s))

	send("fe80::2", "ff02::9", 521, 255, 0)
	assert.Equal(t, map[string]string{"2001:db8:5::/48": "fe80::2 if0"}, learned(s))
}
