package stack_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// face6 is an interface with IPv6 addresses.
func face6(name string, prefixes ...string) stack.Interface {
	f := stack.Interface{Name: name}
	for _, p := range prefixes {
		f.IPv6 = append(f.IPv6, netip.MustParsePrefix(p))
	}
	return f
}

// line6 is like line, with IPv6 only.
func line6(t *testing.T) (w *world, a, b, c *stack.Stack) {
	t.Helper()
	w = newWorld(t)
	a = w.add(stack.Config{
		Interfaces: []stack.Interface{face6("if0", "2001:db8:0::1/64")},
		Routes:     []stack.Route{route("::/0", "2001:db8:0::2")},
		TCP:        courseTCP,
	})
	b = w.add(stack.Config{
		Interfaces: []stack.Interface{face6("if0", "2001:db8:0::2/64"), face6("if1", "2001:db8:1::1/64")},
		Forwarding: true,
	})
	c = w.add(stack.Config{
		Interfaces: []stack.Interface{face6("if0", "2001:db8:1::2/64")},
		Routes:     []stack.Route{route("::/0", "fe80::1%if0")},
		TCP:        courseTCP,
	})
	w.wire(end{0, 0}, end{1, 0})
	w.wire(end{1, 1}, end{2, 0})
	return w, a, b, c
}

func TestPingThroughAnIPv6Router(t *testing.T) {
	w, a, b, c := line6(t)
	for _, dst := range []string{"2001:db8:1::2", "2001:db8:0::2", "fe80::2%if0", "::1", "2001:db8::1"} {
		list := pinged(w, a, icmp.PingConfig{Dst: addr(dst)})
		require.Len(t, list, 1, dst)
		assert.Equal(t, icmp.Replied, list[0].Verdict, dst)
		assert.Equal(t, addr(dst), list[0].From)
	}
	assert.Equal(t, uint64(1), b.Interfaces().Infos()[0].In.Forwarded)
	assert.Equal(t, uint64(1), c.Interfaces().Infos()[0].In.Delivered)
}

func TestIPv6DatagramsInBothDirections(t *testing.T) {
	w, a, _, c := line6(t)
	server := bindUDP(t, c, "[::]:53")
	client, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8:1::2]:53"))
	require.NoError(t, err)
	assert.Equal(t, addr("2001:db8::1"), client.Local().Addr(), "RFC 6724 §5")
	require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, []byte("question")))
	w.run(time.Millisecond)
	assert.Equal(t, client.Local().String()+" question", read(server))
	require.NoError(t, c.Datagrams().Send(w.now, server, client.Local(), []byte("answer")))
	w.run(time.Millisecond)
	assert.Equal(t, "[2001:db8:1::2]:53 answer", read(client))
}

// packet6 makes a packet of UDP to a closed port, or with any protocol.
func packet6(src, dst string, h ip.Header, payload []byte) []byte {
	h.Src, h.Dst = addr(src), addr(dst)
	if payload == nil {
		h.Protocol = ip.ProtoUDP
		payload = udp.Header{SrcPort: 9, DstPort: 33434}.Append(nil, h.Src, h.Dst, nil)
	}
	return packet(h, payload)
}

// RFC 4291 §2.5.2, §2.5.3, §2.5.5.2, §2.5.6 and §2.7, RFC 6890 §2.2.3: a router drops packets whose addresses do not
// belong on a link.
func TestScreenedIPv6Addresses(t *testing.T) {
	const a, c = "2001:db8::1", "2001:db8:1::2"
	for _, tt := range []struct {
		src, dst string
		reason   ip.DropReason
	}{
		{a, c, ip.DropNone},
		{"::", c, ip.DropMartian},
		{"::", "2001:db8::2", ip.DropMartian},
		{"::1", c, ip.DropMartian},
		{"::ffff:10.0.0.1", c, ip.DropMartian},
		{"ff02::1", c, ip.DropMartian},
		{a, "::1", ip.DropMartian},
		{a, "::", ip.DropMartian},
		{a, "::ffff:10.0.0.2", ip.DropMartian},
		{a, "ff00::1", ip.DropMartian},
		{a, "ff01::1", ip.DropMartian},
		{a, "ff02::9", ip.DropGroup},
		{a, "ff05::2", ip.DropGroup},
		{"::", "ff02::9", ip.DropGroup},
		{"2001:db8::2", c, ip.DropOwnSource},
		{"fe80::2", "ff02::1", ip.DropOwnSource},
		{"fe80::2", "fe80::2", ip.DropOwnSource},
		{a, "fe80::99", ip.DropNotForUs},
	} {
		w, _, b, _ := line6(t)
		sent := ask(w, 1, 0, packet6(tt.src, tt.dst, ip.Header{}, nil))
		if tt.reason == ip.DropNone {
			assert.Empty(t, drops(b, 0), "%v", tt)
			assert.Len(t, sent, 1, "%v", tt)
			continue
		}
		assert.Equal(t, map[string]uint64{tt.reason.String(): 1}, drops(b, 0), "%v", tt)
		assert.Empty(t, sent, "%v", tt)
	}
}

// RFC 4443 §3 and §2.2 define the errors that a router sends, and their sources. RFC 4007 §6: a
// link-local address is valid on one link. RFC 4291 §2.6.1: all routers of a network have its first
// address.
func TestIPv6ErrorsOfARouter(t *testing.T) {
	const a, c = "2001:db8::1", "2001:db8:1::2"
	for _, tt := range []struct {
		name     string
		packet   []byte
		typ      icmp.Type
		code     uint8
		rest     [4]byte
		from, to string
	}{
		{"hop limit", packet6(a, c, ip.Header{TTL: 1}, nil), icmp.TypeTimeExceeded6, 0, [4]byte{}, "2001:db8::2", a},
		{"no route", packet6(a, "2001:db9::1", ip.Header{}, nil), icmp.TypeUnreachable6, icmp.CodeNoRoute, [4]byte{}, "2001:db8::2", a},
		{"beyond scope", packet6("fe80::1", c, ip.Header{}, nil), icmp.TypeUnreachable6, icmp.CodeScope, [4]byte{}, "fe80::2", "fe80::1"},
		{"port", packet6(a, "2001:db8:1::1", ip.Header{}, nil), icmp.TypeUnreachable6, icmp.CodePort6, [4]byte{}, "2001:db8:1::1", a},
		{"port of an anycast address", packet6(a, "2001:db8:1::", ip.Header{}, nil), icmp.TypeUnreachable6, icmp.CodePort6, [4]byte{}, "2001:db8::2", a},
		{"port by link-local addresses", packet6("fe80::1", "fe80::2", ip.Header{}, nil), icmp.TypeUnreachable6, icmp.CodePort6, [4]byte{}, "fe80::2", "fe80::1"},
		{"too big", packet6(a, c, ip.Header{Protocol: ip.ProtoUDP}, make([]byte, 1401-40)), icmp.TypeTooBig, 0, [4]byte{2: 5, 3: 0x78}, "2001:db8::2", a},
		{"next header", packet6(a, "2001:db8::2", ip.Header{Protocol: 200}, []byte("x")), icmp.TypeParameterProblem6, icmp.CodeNextHeader, [4]byte{3: 6}, "2001:db8::2", a},
		{
			"option of a forwarded packet",
			packet6(a, c, ip.Header{Next: ip.NextHopByHop, Options: []byte{17, 0, 0xfe, 4, 0, 0, 0, 0}}, nil),
			icmp.TypeParameterProblem6, icmp.CodeOption,
			[4]byte{3: 42},
			"2001:db8::2", a,
		},
		{
			"option to a group",
			packet6(a, "ff02::1", ip.Header{Next: ip.NextDestination, Options: []byte{17, 0, 0x80, 4, 0, 0, 0, 0}}, nil),
			icmp.TypeParameterProblem6, icmp.CodeOption,
			[4]byte{3: 42},
			"2001:db8::2", a,
		},
		{
			"routing header of type 0", // deprecated by RFC 5095 §3
			packet6(a, "2001:db8::2", ip.Header{Next: ip.NextRouting, Options: append([]byte{17, 2, 0, 1, 0, 0, 0, 0}, make([]byte, 16)...)}, nil),
			icmp.TypeParameterProblem6, icmp.CodeHeaderField,
			[4]byte{3: 42},
			"2001:db8::2", a,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, _, _, _ := line6(t)
			sent := ask(w, 1, 0, tt.packet)
			require.Len(t, sent, 1)
			h, payload, drop := ip.ParseHeader(sent[0])
			require.Equal(t, ip.DropNone, drop)
			m, ok := icmp.Parse(payload, h.Src, h.Dst)
			require.True(t, ok)
			assert.Equal(t, addr(tt.from), h.Src)
			assert.Equal(t, addr(tt.to), h.Dst)
			assert.Equal(t, tt.typ, m.Type)
			assert.Equal(t, tt.code, m.Code)
			assert.Equal(t, tt.rest, m.Rest)
			assert.Equal(t, tt.packet[:min(len(tt.packet), 1280-48)], m.Body, "RFC 4443 §2.4 (c)")
		})
	}
}

// RFC 8200 §4: a router reads no extension header except the Hop-by-Hop Options.
func TestForwardingExtensionHeaders(t *testing.T) {
	w, _, b, _ := line6(t)
	for _, next := range []uint8{ip.NextDestination, ip.NextRouting, ip.NextFragment} {
		p := packet6("2001:db8::1", "2001:db8:1::2",
			ip.Header{Next: next, Options: []byte{17, 0, 0xc2, 4, 0, 0, 0, 0}}, nil)
		for range 2 { // first by full processing, and then by the cached decision
			q := append([]byte(nil), p...)
			require.Equal(t, [][]byte{q}, ask(w, 1, 0, q))
			assert.Equal(t, p[7]-1, q[7], "the hop limit")
		}
	}
	assert.Empty(t, drops(b, 0))
}

// RFC 4443 §4.2: a node answers an echo to a group from the interface's address. RFC 4291 §2.7.1
// and §2.8: a node is a member of the all-nodes group and of its solicited-node groups. A router is
// a member of the all-routers group, too.
func TestEchoToAnIPv6Group(t *testing.T) {
	for group, nodes := range map[string]int{
		"ff02::1": 2, "ff02::2": 1, "ff02::1:ff00:1": 1, "ff02::1:ff00:2": 1, "ff02::1:ff00:3": 0,
	} {
		w, _, _, _ := line6(t)
		m := icmp.Message{Type: icmp.TypeEcho6}
		src, dst := addr("2001:db8::7"), addr(group)
		p := packet(ip.Header{Protocol: ip.ProtoICMPv6, Src: src, Dst: dst}, m.Append(nil, src, dst))
		answers := 0
		for k, from := range []string{"2001:db8::1", "2001:db8::2"} {
			for _, b := range ask(w, k, 0, p) {
				h, _, _ := ip.ParseHeader(b)
				assert.Equal(t, addr(from), h.Src)
				answers++
			}
		}
		assert.Equal(t, nodes, answers, group)
	}
}

// A router reaches a neighbor at its link-local address, which follows from the configured one.
// Other addresses on the link do not exist.
func TestIPv6NeighborsOfALink(t *testing.T) {
	w := newWorld(t)
	f := face6("if0", "2001:db8::1/64")
	f.Addr, f.Neighbors = netip.MustParsePrefix("10.0.0.1/24"), []netip.Addr{addr("10.0.0.2"), addr("2001:db8::2")}
	s := w.add(stack.Config{Interfaces: []stack.Interface{f}, Routes: []stack.Route{
		route("2001:db8:9::/48", "fe80::2%if0"), route("2001:db8:8::/48", "2001:db8::2"),
	}})
	require.ErrorIs(t, s.Routing().Add(1, route("2001:db8:7::/48", "fe80::3%if0")), stack.ErrNextHop)
	require.ErrorIs(t, s.Routing().Add(1, route("2001:db8:7::/48", "fe80::2%if9")), stack.ErrNextHop)
	for _, dst := range []string{"2001:db8::2", "2001:db8:9::1", "fe80::2%if0", "fe80::2"} {
		pinged(w, s, icmp.PingConfig{Dst: addr(dst)})
	}
	assert.Equal(t, uint64(4), s.Interfaces().Infos()[0].Out.Packets)
	list := pinged(w, s, icmp.PingConfig{Dst: addr("2001:db8::3")})
	require.Len(t, list, 1)
	assert.Equal(t, icmp.TypeUnreachable6, list[0].Type)
	assert.Equal(t, icmp.CodeAddress, list[0].Code)
}

// RFC 6724 §5: the source shares the longest prefix and the label with the destination, and the
// scope if the scope is link-local. RFC 6164 §5: a network of two addresses has no anycast address
// of all routers.
func TestIPv6SourceAddresses(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{
		Forwarding: true,
		Interfaces: []stack.Interface{
			face6("if0", "2001:db8:1::1/64", "2001:db8:2::1/64", "fe80::99/64", "fd00::1/64"),
			face6("if1", "fe80::7/64"), face6("if2", "2001:db8:3::1/127"),
		},
		Routes: []stack.Route{route("2001:db8:9::/48", "fe80::8%if1"), route("::/0", "2001:db8:1::2")},
	})
	for dst, src := range map[string]string{
		"2001:db8:1::9": "2001:db8:1::1", "2001:db8:2::9": "2001:db8:2::1",
		"2001:db8:9::9": "2001:db8:1::1", "fe80::9%if0": "fe80::99%if0",
		"fd00:0:0:9::9": "fd00::1", "9000::1": "2001:db8:1::1",
		"fe80::8%if1": "fe80::7%if1", "2001:db8:2::1": "2001:db8:2::1", "::1": "::1",
	} {
		assert.Equal(t, addr(src), s.Routing().LocalTo(addr(dst)), dst)
	}
	assert.Len(t, ask(w, 0, 0, packet6("2001:db8:1::9", "2001:db8:2::", ip.Header{}, nil)), 1)
	ask(w, 0, 0, packet6("2001:db8:1::9", "2001:db8:3::", ip.Header{}, nil))
	assert.Equal(t, uint64(1), s.Interfaces().Infos()[0].In.Forwarded)
}

func TestInvalidIPv6Interfaces(t *testing.T) {
	for _, tt := range []struct {
		mtu        int
		addr, text string
	}{
		{1279, "2001:db8::1/64", "MTU 1279: must be 1280 to 65535"},
		{1400, "10.0.0.1/24", "10.0.0.1/24 is not the IPv6 address of a node"},
		{1400, "ff02::1/16", "is not the IPv6 address of a node"},
		{1400, "::1/128", "is not the IPv6 address of a node"},
		{1400, "::ffff:10.0.0.1/120", "is not the IPv6 address of a node"},
	} {
		f := face6("if0", tt.addr)
		f.MTU = tt.mtu
		_, err := stack.New(1, stack.Config{Interfaces: []stack.Interface{f}})
		require.ErrorContains(t, err, tt.text)
	}
}

// An interface without IPv6 addresses drops IPv6 packets, even if other interfaces have addresses.
func TestInterfaceWithoutIPv6(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{Forwarding: true, Interfaces: []stack.Interface{
		face("if0", "10.0.0.1/24"), face6("if1", "2001:db8::1/64"),
	}})
	assert.Empty(t, ask(w, 0, 0, packet6("2001:db8:9::1", "2001:db8::1", ip.Header{}, nil)))
	assert.Equal(t, map[string]uint64{"wrong version": 1}, drops(s, 0))
	assert.Len(t, ask(w, 0, 1, packet6("2001:db8::2", "2001:db8::1", ip.Header{}, nil)), 1)
}

func TestIPv6StreamsCrossALossyRouter(t *testing.T) {
	for _, percent := range []float64{0, 2, 10} {
		t.Run(fmt.Sprint(percent), func(t *testing.T) {
			w, a, b, c := line6(t)
			b.SetLoss(0, percent/100)
			b.SetLoss(1, percent/100)
			s := newStream(w, c, a, netip.MustParseAddrPort("[2001:db8::1]:80"), 1<<20)
			s.run(10 * time.Minute)
			assert.Equal(t, 1340-12, s.client.Info().SndMSS, "RFC 9293 §3.7.1: 60 bytes of headers")
			assert.Equal(t, percent > 0, b.Interfaces().Lossy(0) > 0)
		})
	}
}

// A connection between link-local addresses keeps its interface.
func TestTCPBetweenLinkLocalAddresses(t *testing.T) {
	w, a, b, _ := line6(t)
	s := newStream(w, a, b, netip.MustParseAddrPort("[fe80::2%if0]:80"), 100_000)
	s.run(time.Minute)
	assert.Equal(t, addr("fe80::1%if0"), s.client.Tuple().LocalAddr)
	assert.Equal(t, addr("fe80::1%if0"), s.server.Tuple().RemoteAddr)
}

// RFC 8201 §4: a packet too big makes TCP's segments smaller.
func TestIPv6PathMTUOfAStream(t *testing.T) {
	w, a, b, c := line6(t)
	f := face6("if1", "2001:db8:1::1/64")
	f.MTU = 1300
	require.NoError(t, b.Reconfigure(w.now, []stack.Interface{face6("if0", "2001:db8:0::2/64"), f}))
	s := newStream(w, a, c, netip.MustParseAddrPort("[2001:db8:1::2]:80"), 1<<20)
	s.run(10 * time.Minute)
	assert.Equal(t, 1240-12, s.client.Info().SndMSS)
	assert.Positive(t, drops(b, 1)["too big"])
}

// RFC 8200 §5 and §4.5: the source fragments, the destination reassembles, and a router does
// neither. RFC 8201 §5.2: the source learns the path MTU and keeps it for ten minutes (§4).
func TestIPv6DatagramsAreFragmentedAtTheSource(t *testing.T) {
	w, a, b, c := line6(t)
	f := face6("if1", "2001:db8:1::1/64")
	f.MTU = 1300
	require.NoError(t, b.Reconfigure(w.now, []stack.Interface{face6("if0", "2001:db8:0::2/64"), f}))
	ping := icmp.PingConfig{Dst: addr("2001:db8:1::2"), Data: make([]byte, 5000), Wait: time.Second}
	list := pinged(w, a, ping)
	require.Len(t, list, 1)
	assert.Equal(t, 1300, list[0].MTU, "the first is too big for the router's link")
	for range 2 {
		list = pinged(w, a, ping)
		require.Len(t, list, 1)
		assert.Equal(t, icmp.Replied, list[0].Verdict)
		assert.Equal(t, 5008, list[0].Bytes)
	}
	in := c.Interfaces().Infos()[0].In
	assert.Equal(t, uint64(2), in.Fragmented)
	assert.Equal(t, uint64(1+2*5), in.Fragments,
		"one fragment of the first ping, and five of each later one")
	ping.DF = true
	list = pinged(w, a, ping)
	require.Len(t, list, 1)
	require.ErrorIs(t, list[0].Err, stack.ErrTooBig)
	w.run(10 * time.Minute)
	ping.DF = false
	list = pinged(w, a, ping)
	require.Len(t, list, 1)
	assert.Equal(t, 1300, list[0].MTU, "tried again")
}

// A packet that fitted its link when it was queued is too big for the link after a reload.
func TestMTUShrinksWhileAnIPv6PacketWaits(t *testing.T) {
	w := newWorld(t)
	f := face6("if0", "2001:db8::1/64")
	a := w.add(stack.Config{Interfaces: []stack.Interface{f}})
	u, err := a.Datagrams().Bind(netip.MustParseAddrPort("[::]:5000"))
	require.NoError(t, err)
	to := netip.MustParseAddrPort("[2001:db8::2]:53")
	require.NoError(t, a.Datagrams().Send(w.now, u, to, make([]byte, 1300)))
	f.MTU = 1280
	require.NoError(t, a.Reconfigure(w.now, []stack.Interface{f}))
	assert.Empty(t, sentAtOnce(w, 0))
	assert.Equal(t, map[string]uint64{"too big": 1}, drops(a, 0))
}

// RFC 8200 §4.5: a fragment whose length is not a multiple of 8 causes a parameter problem that
// points to the payload length. If a fragment ends beyond 65,535 bytes, the parameter problem
// points to the fragment's offset.
func TestBadIPv6Fragments(t *testing.T) {
	for _, tt := range []struct {
		offset, size int
		more         bool
		pointer      byte
	}{{0, 1001, true, 4}, {65528, 16, false, 42}} {
		w, _, _, _ := line6(t)
		h := ip.Header{Protocol: ip.ProtoUDP, ID: 7, FragOff: tt.offset, MF: tt.more}
		sent := ask(w, 1, 0, packet6("2001:db8::1", "2001:db8::2", h, make([]byte, tt.size)))
		require.Len(t, sent, 1)
		_, payload, _ := ip.ParseHeader(sent[0])
		assert.Equal(t, icmp.TypeParameterProblem6.Number(), payload[0])
		assert.Equal(t, []byte{0, 0, 0, tt.pointer}, payload[4:8])
	}
}

// RFC 6437 §3: all packets of a connection have the same flow label. Other connections have other
// labels.
func TestFlowLabelsOfConnections(t *testing.T) {
	w, a, _, c := line6(t)
	labels := map[uint32]int{}
	w.mangle = func(p []byte) {
		if h, _, _ := ip.ParseHeader(p); h.Src == addr("2001:db8::1") && h.Protocol == ip.ProtoTCP {
			labels[h.FlowLabel]++
		}
	}
	newStream(w, a, c, netip.MustParseAddrPort("[2001:db8:1::2]:80"), 100_000).run(time.Minute)
	assert.Len(t, labels, 1)
	assert.NotContains(t, labels, uint32(0))
	newStream(w, a, c, netip.MustParseAddrPort("[2001:db8:1::2]:81"), 100_000).run(time.Minute)
	assert.Len(t, labels, 2)
}

// RFC 8201 §4: a packet too big lowers the path MTU, but not below 1,280 bytes, and never raises
// it. RFC 8021 §4: an MTU below that does not cause atomic fragments, and the node drops the
// message under its own reason. RFC 4443 §5.2: the message quotes a packet that exceeds the
// reported MTU.
func TestRFC8201_4_ReportsThatChangeNothing(t *testing.T) {
	w := newWorld(t)
	f := face6("if0", "2001:db8::1/64")
	f.MTU = 4000
	a := w.add(stack.Config{Interfaces: []stack.Interface{f}, Routes: []stack.Route{route("::/0", "2001:db8::2")}})
	u, err := a.Datagrams().Bind(netip.MustParseAddrPort("[::]:5000"))
	require.NoError(t, err)
	var whole []byte
	longest := func(size int) (n int) {
		to := netip.MustParseAddrPort("[2001:db8:9::1]:53")
		require.NoError(t, a.Datagrams().Send(w.now, u, to, make([]byte, size)))
		list := sentAtOnce(w, 0)
		if len(list) == 1 {
			whole = list[0]
		}
		for _, p := range list {
			require.Equal(t, len(list) > 1, p[6] == ip.NextFragment, "no atomic fragment")
			n = max(n, len(p))
		}
		return n
	}
	require.Equal(t, 3048, longest(3000))
	for _, step := range []struct{ reported, want int }{
		{1279, 3048},
		{0, 3048},
		{3048, 3048},
		{2000, 2000},
		{1279, 2000},
		{2001, 2000},
		{4000, 2000},
		{1500, 1496},
		{1280, 1280},
		{1400, 1280},
	} {
		src, dst := addr("2001:db8:5::1"), addr("2001:db8::1")
		e := icmp.Error(nil, src, icmp.ReportError{Type: icmp.TypeTooBig}, step.reported, whole, 1500)
		require.Empty(t, ask(w, 0, 0, packet(ip.Header{Protocol: ip.ProtoICMPv6, Src: src, Dst: dst}, e)))
		assert.Equal(t, step.want, longest(3000), "a router reports %d", step.reported)
	}
	assert.Equal(t, map[string]uint64{"packet too big below 1280": 3}, drops(a, 0))
	w.run(10 * time.Minute)
	assert.Equal(t, 3048, longest(3000), "tried again")
}

// RFC 4443 §2.4 (a) and (b): an error of an unknown type reaches the program whose packet it
// quotes. The node ignores an unknown query.
func TestRFC4443_2_4_UnknownTypes(t *testing.T) {
	for typ, errs := range map[icmp.Type]uint64{
		icmp.TypeUnreachable6: 1, icmp.TypeUnreachable6 + 99: 1, icmp.TypeUnreachable6 + 126: 1,
		icmp.TypeEcho6 + 72: 0, icmp.TypeRedirect6: 0,
	} {
		w, a, _, _ := line6(t)
		u, err := a.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8:1::2]:53"))
		require.NoError(t, err)
		require.NoError(t, a.Datagrams().Send(w.now, u, netip.AddrPort{}, []byte("hello")))
		src, dst := addr("2001:db8::2"), addr("2001:db8::1")
		m := icmp.Message{Type: typ, Body: sentAtOnce(w, 0)[0]}.Append(nil, src, dst)
		assert.Empty(t, ask(w, 0, 0, packet(ip.Header{Protocol: ip.ProtoICMPv6, Src: src, Dst: dst}, m)))
		assert.Equal(t, errs, u.Info().Errors, typ)
	}
}

// RFC 4443 §2.4 (e): a node sends no error about an error, a redirect, a packet to a group, or a
// packet whose source is not one host. The exception is a packet to a group with an option that
// requests the error.
func TestRFC4443_2_4_ErrorsThatAreNotSent(t *testing.T) {
	const a, c = "2001:db8::1", "2001:db8:1::2"
	message := func(typ icmp.Type) []byte {
		return icmp.Message{Type: typ, Body: make([]byte, 48)}.Append(nil, addr(a), addr(c))
	}
	of := func(src, dst string, option byte) []byte {
		h := ip.Header{Next: ip.NextDestination, Options: []byte{17, 0, option, 4, 0, 0, 0, 0}}
		return packet6(src, dst, h, nil)
	}
	for _, tt := range []struct {
		name   string
		packet []byte
		want   int
	}{
		{"hop limit of an echo", packet6(a, c, ip.Header{TTL: 1, Protocol: ip.ProtoICMPv6}, message(icmp.TypeEcho6)), 1},
		{"hop limit of an error", packet6(a, c, ip.Header{TTL: 1, Protocol: ip.ProtoICMPv6}, message(icmp.TypeTimeExceeded6)), 0},
		{"hop limit of an unknown error", packet6(a, c, ip.Header{TTL: 1, Protocol: ip.ProtoICMPv6}, message(icmp.TypeUnreachable6+99)), 0},
		{"hop limit of a redirect", packet6(a, c, ip.Header{TTL: 1, Protocol: ip.ProtoICMPv6}, message(icmp.TypeRedirect6)), 0},
		{"port of a group", packet6(a, "ff02::1", ip.Header{}, nil), 0},
		{"option 10 to a group", of(a, "ff02::1", 0x80), 1},
		{"option 11 to a group", of(a, "ff02::1", 0xc0), 0},
		{"option 11", of(a, "2001:db8::2", 0xc0), 1},
		{"option 01", of(a, "2001:db8::2", 0x40), 0},
		{"option 10 to a group without a source", of("::", "ff02::1", 0x80), 0},
	} {
		w, _, _, _ := line6(t)
		assert.Len(t, ask(w, 1, 0, tt.packet), tt.want, tt.name)
	}
}

// RFC 4443 §2.4 (f): the rate of errors is limited, by a token bucket.
func TestRFC4443_2_4_Rate(t *testing.T) {
	w, _, b, _ := line6(t)
	sent := 0
	for range 200 {
		sent += len(ask(w, 1, 0, packet6("2001:db8::1", "2001:db9::1", ip.Header{}, nil)))
	}
	assert.Equal(t, 50, sent, "the burst")
	assert.Equal(t, uint64(150), drops(b, 0)["icmp rate limit"], drops(b, 0))
	w.run(10 * time.Millisecond)
	for range 200 {
		sent += len(ask(w, 1, 0, packet6("2001:db8::1", "2001:db9::1", ip.Header{}, nil)))
	}
	assert.Equal(t, 60, sent, "1000 a second")
}

// RFC 6946 §4: an atomic fragment is a datagram of its own, even if fragments with the same
// identification wait for others. RFC 8200 §4.5: the waiting fragments stay.
func TestRFC6946_4_AtomicFragments(t *testing.T) {
	w, _, b, _ := line6(t)
	u := bindUDP(t, b, "[::]:53")
	src, dst := addr("2001:db8::1"), addr("2001:db8::2")
	whole := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, src, dst, []byte("in two fragments"))
	alone := udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, src, dst, []byte("alone"))
	h := ip.Header{Protocol: ip.ProtoUDP, ID: 7, MF: true}
	ask(w, 1, 0, packet6("2001:db8::1", "2001:db8::2", h, whole[:16]))
	h.MF = false
	ask(w, 1, 0, packet6("2001:db8::1", "2001:db8::2", h, alone))
	assert.Equal(t, "[2001:db8::1]:9 alone", read(u))
	h.FragOff = 16
	ask(w, 1, 0, packet6("2001:db8::1", "2001:db8::2", h, whole[16:]))
	assert.Equal(t, "[2001:db8::1]:9 in two fragments", read(u))
	assert.Empty(t, drops(b, 0))
}

// RFC 8200 §3 and §4.5: the payload length does not include the header, so the longest packet has
// 65,575 bytes. The node sends and receives it in fragments, sends it to itself, and receives it as
// one packet from a link.
func TestRFC8200_3_LongestPackets(t *testing.T) {
	const most = 65535 - udp.HeaderLen
	w, a, _, c := line6(t)
	server := bindUDP(t, c, "[2001:db8:1::2]:53")
	for _, dst := range []string{"[2001:db8:1::2]:53", "[2001:db8::1]:53"} {
		to, at := netip.MustParseAddrPort(dst), server
		if to.Addr() == addr("2001:db8::1") {
			at = bindUDP(t, a, dst)
		}
		client, err := a.Datagrams().Dial(netip.AddrPort{}, to)
		require.NoError(t, err)
		for _, n := range []int{65536 - ip.HeaderLen6 - udp.HeaderLen, most} {
			require.NoError(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(n)))
			w.run(10 * time.Millisecond)
			assert.Equal(t, pattern(n), readAll(t, at), dst)
		}
		assert.ErrorIs(t, a.Datagrams().Send(w.now, client, netip.AddrPort{}, pattern(most+1)), stack.ErrTooBig)
	}
	h := ip.Header{Protocol: ip.ProtoUDP, TTL: 64, Src: addr("2001:db8::1"), Dst: addr("2001:db8:1::2")}
	b := packet(h, udp.Header{SrcPort: 9, DstPort: 53}.Append(nil, h.Src, h.Dst, pattern(most)))
	require.Len(t, b, 65575)
	c.Input(w.now, 0, false, [][]byte{b})
	assert.Equal(t, pattern(most), readAll(t, server))
	// the additional byte is not part of the packet
	c.Input(w.now, 0, false, [][]byte{append(b, 0)})
	assert.Equal(t, pattern(most), readAll(t, server))
}
