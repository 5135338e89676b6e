package stack_test

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// auto is an interface that configures itself.
func auto(name string) stack.Interface {
	return stack.Interface{
		Name: name, Discovery: &stack.Discovery{Auto: true, Secret: []byte("secret of a host")},
	}
}

// advertised is an interface whose networks a router announces.
func advertised(name string, prefixes ...string) stack.Interface {
	f := face6(name, prefixes...)
	f.Discovery = &stack.Discovery{Advertise: true}
	return f
}

// settled is a time after which both ends have finished their startup.
const settled = 10 * time.Second

// hostWithRouter is a network of a host that configures itself, the host's router, and a node
// behind the router.
func hostWithRouter(t *testing.T) (w *world, host, router, far *stack.Stack) {
	t.Helper()
	w = newWorld(t)
	host = w.add(stack.Config{Interfaces: []stack.Interface{auto("tun0")}})
	router = w.add(stack.Config{
		Interfaces: []stack.Interface{
			advertised("tun0", "2001:db8:1::1/64", "2001:db8:3::1/60"), face6("if1", "2001:db8:2::1/64"),
		},
		Forwarding: true,
	})
	far = w.add(stack.Config{
		Interfaces: []stack.Interface{face6("if0", "2001:db8:2::2/64")},
		Routes:     []stack.Route{route("::/0", "2001:db8:2::1")},
	})
	w.wire(end{0, 0}, end{1, 0})
	w.wire(end{1, 1}, end{2, 0})
	return w, host, router, far
}

// global returns the addresses of interface 0 that are not link-local.
func global(s *stack.Stack) (list []netip.Prefix) {
	return slices.DeleteFunc(slices.Clone(s.Interfaces().Infos()[0].IPv6), func(p netip.Prefix) bool {
		return p.Addr().IsLinkLocalUnicast()
	})
}

// defaultRoute returns the next hop of ::/0, or "".
func defaultRoute(s *stack.Stack) string {
	for _, r := range s.Routing().Infos() {
		if r.Prefix == pfx("::/0") {
			return r.NextHop.String()
		}
	}
	return ""
}

// RFC 4862 §4, RFC 4861 §6.3.4: a host without an address gets one in the router's prefix of 64
// bits, with an opaque identifier (RFC 7217), a network, and the default route.
func TestHostAutoconfiguration(t *testing.T) {
	w, host, router, far := hostWithRouter(t)
	assert.Empty(t, global(host))
	w.run(settled)
	require.Len(t, global(host), 1)
	own := global(host)[0]
	assert.Equal(t, pfx("2001:db8:1::/64"), own.Masked())
	assert.NotContains(t, own.String(), "::", "the identifier is opaque")
	assert.Equal(t, "fe80::1", defaultRoute(host))
	route, ok := host.Routing().Lookup(addr("2001:db8:3::9"))
	assert.True(t, ok)
	assert.Equal(t, pfx("2001:db8:3::/60").Masked(), route.Prefix, "on-link without an address")
	for _, dst := range []string{"2001:db8:2::2", "2001:db8:1::1", "fe80::1%tun0"} {
		assert.Equal(t, icmp.Replied, pinged(w, host, icmp.PingConfig{Dst: addr(dst)})[0].Verdict, dst)
	}
	assert.Equal(t, icmp.Replied, pinged(w, far, icmp.PingConfig{Dst: own.Addr()})[0].Verdict)
	require.Len(t, global(router), 2)

	t.Log("# the same node has the same address again (RFC 7217 §5)")
	w, again, _, _ := hostWithRouter(t)
	w.run(settled)
	assert.Equal(t, global(host), global(again))

	t.Log("# down and up: autoconfiguration starts again")
	again.SetUp(w.now, 0, false)
	assert.Empty(t, defaultRoute(again))
	w.run(time.Second)
	again.SetUp(w.now, 0, true)
	assert.Empty(t, global(again))
	w.run(settled)
	assert.Equal(t, global(host), global(again))
	assert.Equal(t, "fe80::1", defaultRoute(again))

	t.Log("# a reload keeps what discovery found")
	require.NoError(t, again.Reconfigure(w.now, []stack.Interface{auto("tun0"), face("if1",
		"10.0.0.1/24")}))
	assert.Equal(t, global(host), global(again))
	assert.Equal(t, "fe80::1", defaultRoute(again))
	require.NoError(t, again.Reconfigure(w.now, []stack.Interface{{}, face("if1", "10.0.0.1/24")}))
	assert.Empty(t, defaultRoute(again))
}

// message6 makes a packet with a message of neighbor discovery or MLD.
func message6(src, dst string, hopLimit uint8, m icmp.Message) []byte {
	h := ip.Header{
		Protocol: ip.ProtoICMPv6, TTL: hopLimit, Src: addr(src), Dst: addr(dst),
	}
	body := m.Append(nil, h.Src, h.Dst)
	h.TotalLen = ip.HeaderLen6 + len(body)
	return append(h.Append(nil), body...)
}

// withRouterAlert adds the router alert option to a packet (RFC 2711 §2.1).
func withRouterAlert(b []byte) []byte {
	option := []byte{b[6], 0, 5, 2, 0, 0, 1, 0}
	b[6] = ip.NextHopByHop
	b[5] += byte(len(option))
	return slices.Insert(b, ip.HeaderLen6, option...)
}

// discover is like message6, for neighbor discovery.
func discover(src, dst string, d icmp.Discovery) []byte {
	return message6(src, dst, 255, d.Message())
}

// advert is an advertisement of a prefix with lifetimes.
func advert(src, prefix string, router, preferred, valid time.Duration) []byte {
	return discover(src, "ff02::1", icmp.Discovery{
		Type: icmp.TypeRouterAdvert6, Advert: icmp.Advert{
			Lifetime: router, MTU: 1300, HopLimit: 64, Prefixes: []icmp.PrefixInfo{{
				Prefix: pfx(prefix), OnLink: true, Autonomous: true, Valid: valid, Preferred: preferred,
			}},
		},
	})
}

// hear passes packets to a stack at interface 0, and sends the packets that they cause.
func (w *world) hear(s *stack.Stack, packets ...[]byte) {
	s.Input(w.now, 0, false, packets)
	w.drain(slices.Index(w.stacks, s))
}

// RFC 4862 §5.5.4, RFC 4861 §6.3.5: an address becomes deprecated, so that the node prefers others,
// and is then removed. The default route, the prefix and the router's MTU are used.
func TestLifetimesOfAddressesAndRouters(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{Interfaces: []stack.Interface{auto("tun0")}})
	w.run(settled)
	w.hear(s, advert("fe80::a", "2001:db8:1::/64", 30*time.Second, 20*time.Second, 40*time.Second))
	w.hear(s, advert("fe80::a", "2001:db8:2::/64", 30*time.Second, time.Hour, 2*time.Hour))
	w.run(5 * time.Second)
	require.Len(t, global(s), 2)
	first, second := global(s)[0].Addr(), global(s)[1].Addr()
	assert.Equal(t, 1300, s.Interfaces().Infos()[0].MTU)
	assert.Equal(t, "fe80::a", defaultRoute(s))
	known := s.Interfaces().Infos()[0]
	neighbors := s.Interfaces().Discovered(w.now, &known)
	assert.Empty(t, neighbors, "nothing was sent to the router")
	require.Len(t, known.Addresses, 3)
	assert.Equal(t, "preferred", known.Addresses[0].State)
	assert.Zero(t, known.Addresses[0].Valid, "the link-local address has no lifetime")
	assert.Equal(t, [2]time.Duration{15 * time.Second, 35 * time.Second},
		[2]time.Duration{known.Addresses[1].Preferred, known.Addresses[1].Valid})
	far := addr("2001:db8:1:ffff::1")
	assert.Equal(t, first, s.Routing().LocalTo(far), "the longest prefix in common")
	w.run(20 * time.Second)
	assert.Equal(t, second, s.Routing().LocalTo(far),
		"RFC 6724 §5: the address that is not deprecated")
	assert.Len(t, global(s), 2)
	w.run(10 * time.Second)
	assert.Empty(t, defaultRoute(s))
	w.run(10 * time.Second)
	require.Len(t, global(s), 1)
	assert.Equal(t, second, global(s)[0].Addr())
	var gone []string
	for _, e := range s.Events() {
		if e.Address != nil && e.Address.Gone {
			gone = append(gone, e.Address.Addr.Addr().String())
		}
	}
	assert.Equal(t, []string{first.String()}, gone)
	_, ok := s.Routing().Lookup(first)
	assert.False(t, ok, "its network is no longer on the link")
}

// RFC 4862 §5.4: the second node that configures an address removes it. Its interface goes down if
// that was the only address.
func TestDuplicateAddress(t *testing.T) {
	for _, row := range []struct {
		addrs []string
		left  []string
		up    bool
	}{
		{[]string{"2001:db8::1/64", "fe80::2/64"}, []string{"fe80::2/64"}, true},
		{[]string{"2001:db8::1/64", "2001:db8:7::1/64", "fe80::2/64"}, []string{"2001:db8:7::1/64", "fe80::2/64"}, true},
		{[]string{"2001:db8::1/64"}, []string{"fe80::1/64"}, false},
	} {
		w := newWorld(t)
		one := face6("if0", "2001:db8::1/64")
		one.Discovery = &stack.Discovery{}
		first := w.add(stack.Config{Interfaces: []stack.Interface{one}})
		w.run(settled)
		two := face6("if0", row.addrs...)
		two.Discovery = &stack.Discovery{}
		second := w.add(stack.Config{Interfaces: []stack.Interface{two}})
		w.bus = []end{{0, 0}, {1, 0}}
		_, early := second.Interfaces().Owns(addr("2001:db8::1"))
		assert.True(t, early, "a configured address is used while it is checked")
		w.run(settled)
		var left []string
		info := second.Interfaces().Infos()[0]
		for _, p := range info.IPv6 {
			left = append(left, p.String())
		}
		assert.Equal(t, row.left, left, row.addrs)
		assert.Equal(t, row.up, info.Up)
		assert.Len(t, first.Interfaces().Infos()[0].IPv6, 2)
		assert.True(t, first.Interfaces().Infos()[0].Up)
		var told []string
		for _, e := range second.Events() {
			if e.Address != nil && e.Address.Duplicate {
				told = append(told, e.Address.Addr.String())
			}
		}
		assert.Contains(t, told, "2001:db8::1/64")
	}
}

// A duplicate link-local address ends IPv6 on the interface (RFC 4862 §5.4.5), but not IPv4.
func TestDuplicateLinkLocalAddress(t *testing.T) {
	w := newWorld(t)
	f := dual("if0", "10.0.0.1/24", "2001:db8::1/64")
	f.Discovery = &stack.Discovery{}
	s := w.add(stack.Config{Interfaces: []stack.Interface{f}})
	w.hear(s, discover("fe80::1", "ff02::1", icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: addr("fe80::1")}))
	info := s.Interfaces().Infos()[0]
	assert.Empty(t, info.IPv6)
	assert.True(t, info.Up)
	assert.Equal(t, pfx("10.0.0.1/24"), info.Addr)
	assert.Equal(t, map[string]uint64{"own address as source": 1}, drops(s, 0))
}

// RFC 4861 §3.1, §6.1 and §7.1: messages from beyond the link and malformed ones are dropped, each
// under a drop reason, and change nothing.
func TestForgedNeighborDiscovery(t *testing.T) {
	w, host, router, _ := hostWithRouter(t)
	w.run(settled)
	before, hop := global(host), defaultRoute(host)
	own := before[0].Addr()
	host.Interfaces().ClearCounters(0)
	solicit := icmp.Discovery{Type: icmp.TypeNeighborSolicit, Target: own}
	tell := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: addr("fe80::1"), Override: true}
	last := advert("fe80::1", "2001:db8:9::/64", 0, time.Hour, time.Hour)
	for _, p := range [][]byte{
		message6("fe80::9", own.String(), 254, solicit.Message()),
		message6("fe80::1", "ff02::1", 254, tell.Message()),
		withRouterAlert(message6("fe80::9", "ff02::1", 2, icmp.Message{
			Type: icmp.TypeListenerQuery,
			Body: make([]byte, 20),
		})),
	} {
		w.hear(host, p)
	}
	last[7]--
	w.hear(host, last)
	short := icmp.Message{Type: icmp.TypeNeighborSolicit, Body: make([]byte, 15)}
	w.hear(host, message6("fe80::9", own.String(), 255, short))
	w.hear(host, advert("2001:db8:2::2", "2001:db8:9::/64", time.Hour, time.Hour, time.Hour))
	assert.Equal(t, map[string]uint64{
		"neighbor discovery from off-link": 4, "bad neighbor discovery": 2,
	}, drops(host, 0))
	w.run(settled)
	assert.Equal(t, before, global(host))
	assert.Equal(t, hop, defaultRoute(host))

	t.Log("# routers and configured hosts ignore advertisements of others")
	w.hear(router, advert("fe80::9", "2001:db8:9::/64", time.Hour, time.Hour, time.Hour))
	w.run(settled)
	assert.Len(t, global(router), 2)
	assert.Empty(t, defaultRoute(router))
}

// A flood of advertisements with new prefixes and routers fills bounded tables, and is
// counted by drop reason.
func TestRouterAdvertisementFlood(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{Interfaces: []stack.Interface{auto("tun0")}})
	w.run(settled)
	const routers = 2000
	for i := range routers {
		a := netip.AddrFrom16([16]byte{0xfe, 0x80, 14: byte(i >> 8), 15: byte(i)})
		p := netip.AddrFrom16([16]byte{0x20, 0x01, 0xd, 0xb8, 6: byte(i >> 8), 7: byte(i)})
		w.hear(s, advert(a.String(), p.String()+"/64", time.Hour, time.Hour, time.Hour))
	}
	w.run(settled)
	assert.Less(t, len(global(s)), 20)
	assert.Less(t, len(s.Routing().Infos()), 60)
	assert.Greater(t, drops(s, 0)["router advertisement flood"], uint64(routers-50))
	assert.NotEmpty(t, defaultRoute(s))
}

// RFC 4861 §7.3 and §6.3.6: a default router that answers no probes is replaced by one that does.
func TestUnreachableDefaultRouterIsReplaced(t *testing.T) {
	w, host, _, _ := hostWithRouter(t)
	w.run(settled)
	ghost := advert("fe80::bad", "2001:db8:1::/64", time.Hour, time.Hour, time.Hour)
	w.hear(host, ghost)
	require.Equal(t, "fe80::1", defaultRoute(host), "the first router stays the default router")
	talk := func(d time.Duration) {
		u, err := host.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8:2::2]:9"))
		require.NoError(t, err)
		defer u.Close()
		for range d / (100 * time.Millisecond) {
			require.NoError(t, host.Datagrams().Send(w.now, u, netip.AddrPort{}, []byte("x")))
			w.run(100 * time.Millisecond)
		}
	}
	talk(90 * time.Second)
	assert.Equal(t, "fe80::1", defaultRoute(host), "the router answers probes")
	w.wires = map[end]end{}
	talk(90 * time.Second)
	assert.Equal(t, "fe80::bad", defaultRoute(host))
	w.run(2 * time.Hour)
	assert.Empty(t, defaultRoute(host), "the lifetimes have ended")
}

// An idle link stays idle: the answer to a probe starts no probe.
func TestProbesEnd(t *testing.T) {
	w, host, _, _ := hostWithRouter(t)
	w.run(settled)
	require.Equal(t, icmp.Replied, pinged(w, host, icmp.PingConfig{Dst: addr("fe80::1%tun0")})[0].Verdict)
	w.run(time.Minute)
	known := host.Interfaces().Infos()[0]
	require.Len(t, host.Interfaces().Discovered(w.now, &known), 1)
	assert.Equal(t, "stale", string(host.Interfaces().Discovered(w.now, &known)[0].State))
	before := known.Out.Packets
	w.run(10 * time.Minute)
	assert.Equal(t, before, host.Interfaces().Infos()[0].Out.Packets)
}

// reports lists the group records of the MLDv2 and IGMPv3 reports that a stack sends.
func reports(s *stack.Stack) func() []string {
	var list []string
	s.SetTap(func(_ clock.Time, _ int, dir stack.Direction, _ ip.DropReason, pieces [][]byte) {
		b := slices.Concat(pieces...)
		size, record := 4, b[24+8:] // the IPv4 header has a router alert option
		switch {
		case dir != stack.Outbound || b[0]>>4 == 4 && b[9] != ip.ProtoIGMP:
			return
		case b[0]>>4 == 6:
			if b[6] != ip.NextHopByHop || b[48] != 143 || b[7] != 1 {
				return
			}
			size, record = 16, b[48+8:]
		}
		for ; len(record) > 0; record = record[4+size:] {
			a, _ := netip.AddrFromSlice(record[4:][:size])
			list = append(list, strings.Join([]string{a.String(), map[byte]string{2: "is", 3: "left", 4: "joined"}[record[0]]}, " "))
		}
	})
	return func() (now []string) {
		slices.Sort(list)
		now, list = slices.Compact(list), nil
		return now
	}
}

// RFC 3810 §6, RFC 3376 §5: a node reports the groups of its protocols, sockets and addresses when
// they change and when a querier asks for them.
func TestGroupsAreReported(t *testing.T) {
	w := newWorld(t)
	f := dual("tun0", "10.0.0.1/24", "2001:db8::1/64")
	f.Discovery = &stack.Discovery{}
	s := w.add(both(f))
	heard := reports(s)
	w.run(settled)
	always := []string{"224.0.0.9", "ff02::1:ff00:1", "ff02::2", "ff02::9"}
	each := func(what string, more ...string) (list []string) {
		for _, g := range slices.Concat(always, more) {
			list = append(list, g+" "+what)
		}
		slices.Sort(list)
		return list
	}
	assert.Equal(t, sorted(slices.Concat(each("is")[1:], each("joined"))), heard())
	u, v := bindUDP(t, s, "0.0.0.0:9999"), bindUDP(t, s, "[::]:9998")
	require.NoError(t, s.Datagrams().Join(u, 0, addr("239.1.2.3")))
	require.NoError(t, s.Datagrams().Join(v, 0, addr("ff02::1234")))
	w.run(settled)
	assert.Equal(t, []string{"239.1.2.3 joined", "ff02::1234 joined"}, heard())
	w.hear(s, withRouterAlert(message6("fe80::7", "ff02::1", 1,
		icmp.Message{Type: icmp.TypeListenerQuery, Body: make([]byte, 20)})))
	igmp := ip.Header{Protocol: ip.ProtoIGMP, TTL: 1, Src: addr("10.0.0.2"), Dst: addr("224.0.0.1"), TotalLen: 32}
	query := icmp.Message{Type: 0x11, Code: 10, Body: make([]byte, 4)}
	w.hear(s, append(igmp.Append(nil), query.Append(nil, netip.Addr{}, netip.Addr{})...))
	w.run(settled)
	assert.Equal(t, each("is", "239.1.2.3", "ff02::1234"), heard())
	igmp.TTL = 2
	w.hear(s, append(igmp.Append(nil), query.Append(nil, netip.Addr{}, netip.Addr{})...))
	assert.Equal(t, map[string]uint64{"neighbor discovery from off-link": 1}, drops(s, 0))
	u.Close()
	require.NoError(t, s.Datagrams().Leave(v, 0, addr("ff02::1234")))
	w.run(settled)
	assert.Equal(t, []string{"239.1.2.3 left", "ff02::1234 left"}, heard())
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// Links with configured neighbors send no messages of discovery and ignore those that arrive.
func TestLinksWithoutDiscovery(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{Interfaces: []stack.Interface{face6("if0", "2001:db8::1/64")}})
	u := bindUDP(t, s, "[::]:9")
	require.NoError(t, s.Datagrams().Join(u, 0, addr("ff02::1234")))
	w.hear(s, advert("fe80::a", "2001:db8:1::/64", time.Hour, time.Hour, time.Hour))
	w.run(settled)
	assert.Zero(t, s.Interfaces().Infos()[0].Out.Packets)
	assert.Len(t, global(s), 1)
	assert.Empty(t, defaultRoute(s))
}

// RFC 3810 §6.2 and §7.4: the node drops MLD messages without a router alert, and counts them under
// a drop reason. It does not drop other hosts' reports that have a router alert.
func TestRFC3810_6_2_RouterAlert(t *testing.T) {
	w := newWorld(t)
	f := face6("tun0", "2001:db8::1/64")
	f.Discovery = &stack.Discovery{}
	s := w.add(both(f))
	heard := reports(s)
	w.run(settled)
	heard()
	kinds := []icmp.Type{
		icmp.TypeListenerQuery, icmp.TypeListenerReport1, icmp.TypeListenerDone, icmp.TypeListenerReport,
	}
	packet := func(kind icmp.Type) []byte {
		return message6("fe80::7", "ff02::1", 1, icmp.Message{Type: kind, Body: make([]byte, 20)})
	}
	for _, kind := range kinds {
		w.hear(s, packet(kind))
		padded := withRouterAlert(packet(kind))
		padded[42] = 0x1e // an option that is skipped
		w.hear(s, padded)
	}
	w.run(settled)
	assert.Equal(t, map[string]uint64{"mld without router alert": 8}, drops(s, 0))
	assert.Empty(t, heard())
	for _, kind := range kinds {
		w.hear(s, withRouterAlert(packet(kind)))
	}
	w.run(settled)
	assert.Equal(t, map[string]uint64{"mld without router alert": 8}, drops(s, 0))
	assert.Contains(t, heard(), "ff02::9 is")
}

// RFC 6980 §5: the node ignores neighbor discovery in fragments, even in an atomic fragment.
func TestRFC6980_5_DiscoveryInFragments(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{Interfaces: []stack.Interface{auto("tun0")}})
	w.run(settled)
	atomic := func(b []byte) []byte {
		header := []byte{b[6], 0, 0, 0, 0, 0, 0, 1}
		b[6] = ip.NextFragment
		b[5] += byte(len(header))
		return slices.Insert(b, ip.HeaderLen6, header...)
	}
	all := advert("fe80::a", "2001:db8:1::/64", time.Hour, time.Hour, time.Hour)
	w.hear(s, atomic(slices.Clone(all)))
	assert.Equal(t, map[string]uint64{"neighbor discovery in fragments": 1}, drops(s, 0))
	first := atomic(slices.Clone(all[:ip.HeaderLen6+24]))
	first[5], first[43] = 8+24, 1
	second := atomic(slices.Concat(all[:ip.HeaderLen6], all[ip.HeaderLen6+24:]))
	second[5], second[43] = byte(len(second)-ip.HeaderLen6), 24
	w.hear(s, first, second)
	w.run(settled)
	assert.Equal(t, map[string]uint64{"neighbor discovery in fragments": 2}, drops(s, 0))
	assert.Empty(t, global(s))
	w.hear(s, all)
	w.run(settled)
	assert.Len(t, global(s), 1)
}

// RFC 4861 §6.3.4: a host's IPv6 packets start with the hop limit that its router announces. IPv4
// packets and those of other interfaces do not. A hop limit of zero changes nothing. An
// application's own hop limit has precedence.
func TestRFC4861_6_3_4_HopLimit(t *testing.T) {
	w, host, _, _ := hostWithRouter(t)
	w.run(settled)
	announce := func(limit uint8) {
		b := advert("fe80::1", "2001:db8:1::/64", time.Hour, time.Hour, time.Hour)
		b[ip.HeaderLen6+4] = limit
		b[ip.HeaderLen6+2], b[ip.HeaderLen6+3] = 0, 0
		sum := checksum.PseudoHeader(addr("fe80::1"), addr("ff02::1"), ip.ProtoICMPv6, len(b)-ip.HeaderLen6)
		binary.BigEndian.PutUint16(b[ip.HeaderLen6+2:], ^checksum.Fold(checksum.Sum(b[ip.HeaderLen6:], sum)))
		w.hear(host, b)
	}
	limits := map[uint8]uint8{} // hop limits by protocol
	host.SetTap(func(_ clock.Time, _ int, dir stack.Direction, _ ip.DropReason, pieces [][]byte) {
		if b := slices.Concat(pieces...); dir == stack.Outbound && b[0]>>4 == 6 && b[7] != 255 {
			limits[b[6]] = b[7]
		}
	})
	send := func(ttl uint8) map[uint8]uint8 {
		clear(limits)
		u, err := host.Datagrams().Dial(netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8:2::2]:9"))
		require.NoError(t, err)
		defer u.Close()
		o := u.Options()
		o.TTL = ttl
		u.SetOptions(o)
		require.NoError(t, host.Datagrams().Send(w.now, u, netip.AddrPort{}, []byte("x")))
		assert.Equal(t, icmp.Replied, pinged(w, host, icmp.PingConfig{Dst: addr("2001:db8:2::2")})[0].Verdict)
		_, err = host.DialTCP(w.now, netip.AddrPort{}, netip.MustParseAddrPort("[2001:db8:2::2]:9"))
		require.NoError(t, err)
		w.run(time.Second)
		return maps.Clone(limits)
	}
	with := func(udp, others uint8) map[uint8]uint8 {
		return map[uint8]uint8{ip.ProtoUDP: udp, ip.ProtoICMPv6: others, ip.ProtoTCP: others}
	}
	assert.Equal(t, with(64, 64), send(0))
	announce(33)
	assert.Equal(t, with(33, 33), send(0))
	assert.Equal(t, with(7, 33), send(7))
	announce(0)
	assert.Equal(t, with(33, 33), send(0))
	require.NoError(t, host.Reconfigure(w.now, []stack.Interface{auto("tun0"), face("if1",
		"10.0.0.1/24")}))
	assert.Equal(t, with(33, 33), send(0), "a reload keeps the hop limit")
}
