package icmp_test

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
)

var prefix6 = netip.MustParsePrefix("2001:db8::/64")

// advertising announces prefix6 for three hours, preferred for one.
func advertising() *icmp.Advert {
	return &icmp.Advert{
		HopLimit: 33, MTU: 1280, Prefixes: []icmp.PrefixInfo{
			{Prefix: prefix6, OnLink: true, Autonomous: true, Valid: 3 * time.Hour, Preferred: time.Hour},
		},
	}
}

// hear passes an advertisement of router6 to a node.
func (l *link6) hear(n *node6, a icmp.Advert) {
	d := icmp.Discovery{Type: icmp.TypeRouterAdvert6, Advert: a, SourceLink: []byte{2, 0, 0, 0, 0, 0xff}}
	m := d.Message()
	require.Equal(l.tb, icmp.Accepted, n.Input(l.now, &m, router6, allNodes, 255))
	l.follow(n)
}

// in returns a node's addresses in a prefix.
func (n *node6) in(p netip.Prefix) (list []icmp.AddressInfo) {
	for _, a := range n.Addresses() {
		if p.Contains(a.Prefix.Addr()) {
			list = append(list, a)
		}
	}
	return list
}

// RFC 4861 §6.3.4, §6.3.7 and §6.2.6, RFC 4862 §5.5.3: a host solicits a router, and configures an
// address, the prefix, the hop limit and the MTU from its answer.
func TestRFC4862_5_5_Autoconfiguration(t *testing.T) {
	l := newLink6(t)
	r := l.add(1, icmp.InterfaceConfig{Router: true, Advertise: advertising()})
	l.run(time.Minute)
	l.sent()
	h := l.add(2, icmp.InterfaceConfig{MTU: 1400})
	l.run(10 * time.Second)
	assert.Contains(t, l.sent(), "B rs group")
	require.Len(t, h.in(prefix6), 1)
	own := h.in(prefix6)[0]
	assert.Equal(t, icmp.Preferred, own.State)
	assert.Equal(t, []string{
		"preferred " + h.local().String() + "/64", "router " + r.local().String(), "hops 33", "mtu 1280",
		"on-link 2001:db8::/64", "preferred " + own.Prefix.String(),
	}, h.changes)
	l.send(h, r.local())
	l.run(time.Minute)
	l.sent()

	l.run(12 * time.Hour)
	assert.Empty(t, slices.DeleteFunc(l.sent(), func(s string) bool { return s == "A ra group" }))
	assert.Len(t, h.changes, 6, "a renewal is not a change")
	r.down = true
	l.run(30*time.Minute + 1)
	assert.Equal(t, "router invalid IP", h.changes[len(h.changes)-1], "RFC 4861 §6.3.5: its lifetime ended")
	l.run(4 * time.Hour)
	assert.Equal(t, []string{
		"deprecated " + own.Prefix.String(), "removed " + own.Prefix.String(), "off-link 2001:db8::/64",
	}, h.changes[len(h.changes)-3:], "RFC 4862 §5.5.4")
}

// RFC 4862 §5.5.3 (e): no advertisement reduces the valid lifetime below two hours, or below the
// remaining lifetime if that is less. The preferred lifetime is always that of the advertisement.
func TestRFC4862_5_5_3_TwoHours(t *testing.T) {
	for _, row := range []struct{ left, heard, want time.Duration }{
		{24 * time.Hour, 3 * time.Hour, 3 * time.Hour},
		{24 * time.Hour, time.Hour, 2 * time.Hour},
		{24 * time.Hour, 0, 2 * time.Hour},
		{time.Hour, 90 * time.Minute, 90 * time.Minute},
		{time.Hour, 30 * time.Minute, time.Hour},
		{time.Hour, 0, time.Hour},
		{time.Hour, icmp.Infinite, icmp.Infinite},
		{icmp.Infinite, time.Hour, 2 * time.Hour},
	} {
		l := newLink6(t)
		h := l.add(1, icmp.InterfaceConfig{})
		info := icmp.PrefixInfo{Prefix: prefix6, Autonomous: true, Valid: row.left, Preferred: row.left}
		l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{info}})
		l.run(5 * time.Second)
		info.Valid, info.Preferred = row.left+5*time.Second, 0
		l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{info}})
		info.Valid = row.heard
		l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{info}})
		require.Len(t, h.in(prefix6), 1)
		a := h.in(prefix6)[0]
		assert.InDelta(t, row.want, a.Valid.Sub(l.now), float64(6*time.Second), row)
		assert.Equal(t, icmp.Deprecated, a.State)
		assert.False(t, h.Deadline().Due(l.now), "a deprecated address is not due again")
		info.Preferred = row.heard
		l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{info}})
		if row.heard > 0 {
			assert.Equal(t, icmp.Preferred, h.in(prefix6)[0].State)
		}
	}
}

// RFC 4862 §5.5.3 (a) to (d), RFC 4861 §6.3.4: these prefixes form no address.
func TestRFC4862_5_5_3_NoAddress(t *testing.T) {
	good := icmp.PrefixInfo{Prefix: prefix6, OnLink: true, Autonomous: true, Valid: time.Hour, Preferred: time.Hour}
	for name, edit := range map[string]func(p *icmp.PrefixInfo){
		"not autonomous":        func(p *icmp.PrefixInfo) { p.Autonomous = false },
		"link-local":            func(p *icmp.PrefixInfo) { p.Prefix = netip.MustParsePrefix("fe80::/64") },
		"preferred after valid": func(p *icmp.PrefixInfo) { p.Preferred = 2 * time.Hour },
		"not 64 bits":           func(p *icmp.PrefixInfo) { p.Prefix = netip.MustParsePrefix("2001:db8::/65") },
		"valid for no time":     func(p *icmp.PrefixInfo) { p.Valid, p.Preferred = 0, 0 },
		"a group":               func(p *icmp.PrefixInfo) { p.Prefix = netip.MustParsePrefix("ff02::/64") },
	} {
		l := newLink6(t)
		h := l.add(1, icmp.InterfaceConfig{})
		p := good
		edit(&p)
		l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{p}})
		assert.Len(t, h.Addresses(), 1, name)
	}
	l := newLink6(t)
	manual, router := l.add(1, icmp.InterfaceConfig{Manual: true}), l.add(2, icmp.InterfaceConfig{Router: true})
	for _, n := range []*node6{manual, router} {
		l.hear(n, icmp.Advert{Lifetime: time.Hour, Prefixes: []icmp.PrefixInfo{good}})
		assert.Len(t, n.Addresses(), 1)
	}
	assert.Empty(t, manual.changes, "a manually configured host ignores routers")
	assert.Empty(t, router.changes, "RFC 4861 §6.2.7: a router configures nothing")
	h := l.add(3, icmp.InterfaceConfig{})
	good.Autonomous = false
	l.hear(h, icmp.Advert{Lifetime: time.Hour, Prefixes: []icmp.PrefixInfo{good}})
	good.Valid, good.Preferred = 0, 0
	l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{good}})
	assert.Equal(t, []string{
		"router fe80::ff", "on-link 2001:db8::/64", "router invalid IP", "off-link 2001:db8::/64",
	}, h.changes)
}

// RFC 4861 §6.3.4 and §6.2.6: a host ignores an MTU that is invalid or exceeds its link's, and
// messages that are for routers only. A prefix without a preferred lifetime forms a deprecated
// address.
func TestPartlyInvalidAdvertisements(t *testing.T) {
	l := newLink6(t)
	h := l.add(1, icmp.InterfaceConfig{MTU: 1500})
	for _, mtu := range []int{68, 1279, 1501, 9000} {
		l.hear(h, icmp.Advert{MTU: mtu})
	}
	assert.Empty(t, h.changes)
	l.hear(h, icmp.Advert{MTU: 1500})
	assert.Equal(t, []string{"mtu 1500"}, h.changes)

	l.hear(h, icmp.Advert{Prefixes: []icmp.PrefixInfo{{Prefix: prefix6, Autonomous: true, Valid: time.Hour}}})
	l.run(3 * time.Second)
	assert.Equal(t, icmp.Deprecated, h.in(prefix6)[0].State)
}

// A flood of advertisements creates at most 16 addresses and routers and 32 prefixes.
func TestRouterFlood(t *testing.T) {
	l := newLink6(t)
	h, refused := l.add(1, icmp.InterfaceConfig{}), 0
	for k := range 1000 {
		a := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, byte(k >> 8), byte(k)})
		d := icmp.Discovery{
			Type: icmp.TypeRouterAdvert6,
			Advert: icmp.Advert{Lifetime: time.Hour, Prefixes: []icmp.PrefixInfo{{
				Prefix: netip.PrefixFrom(a, 64), OnLink: true, Autonomous: true, Valid: time.Hour, Preferred: time.Hour,
			}}},
		}
		m := d.Message()
		src := netip.AddrFrom16([16]byte{0xfe, 0x80, 13: 1, 14: byte(k >> 8), 15: byte(k)})
		if h.Input(l.now, &m, src, allNodes, 255) == icmp.RefusedFlood {
			refused++
		}
		require.LessOrEqual(t, len(h.Addresses()), 16)
	}
	assert.Equal(t, 985, refused)
	assert.Empty(t, h.Neighbors(l.now), "an advertisement creates no neighbor")
	l.follow(h)
	onLink := slices.DeleteFunc(h.changes, func(s string) bool { return !strings.HasPrefix(s, "on-link") })
	assert.Len(t, onLink, 32)
	l.run(2 * time.Hour)
	assert.Len(t, h.Addresses(), 1)
}

// RFC 4861 §6.3.6: a host changes to another router when the first does not answer probes, and
// keeps the second when the first answers again. A router that becomes a host is no longer used as
// a router.
func TestRFC4861_6_3_6_RouterVanishes(t *testing.T) {
	l := newLink6(t)
	r := l.add(1, icmp.InterfaceConfig{Router: true, Advertise: advertising()})
	s := l.add(2, icmp.InterfaceConfig{Router: true, Advertise: advertising()})
	h := l.add(3, icmp.InterfaceConfig{})
	l.run(time.Minute)
	routers := func() (list []string) {
		for _, c := range h.changes {
			if r, ok := strings.CutPrefix(c, "router "); ok {
				list = append(list, r)
			}
		}
		return list
	}
	first, second := r, s
	if routers()[0] == s.local().String() {
		first, second = s, r
	}
	require.Equal(t, []string{first.local().String()}, routers())
	l.send(h, first.local())
	l.run(10 * time.Second)
	first.down = true
	l.run(time.Minute)
	l.send(h, first.local())
	l.run(10 * time.Second)
	require.Equal(t, []string{first.local().String(), second.local().String()}, routers())
	first.down = false
	l.run(time.Hour)
	assert.Len(t, routers(), 2)

	l.send(h, second.local())
	l.run(time.Hour) // until the next advertisement, which contains the router flag
	d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: second.local(), Solicited: true}
	m := d.Message()
	h.Input(l.now, &m, second.local(), h.local(), 255)
	l.follow(h)
	assert.Equal(t, first.local().String(), routers()[2], "RFC 4861 §7.2.5: no router flag")
	first.Cease()
	l.run(0)
	assert.Equal(t, "invalid IP", routers()[3], "RFC 4861 §6.2.5")
	l.sent()
	first.Cease()
	l.run(time.Hour)
	assert.NotContains(t, l.sent(), first.name+" ra group", "only once")
}

// RFC 4861 §6.2.1, §6.2.4, §6.2.6 and §10: a router sends three advertisements within 16 s of each
// other, then others at random intervals. It answers solicitations within half a second, but not
// within 3 s of the last advertisement.
func TestRFC4861_6_2_Advertisements(t *testing.T) {
	l := newLink6(t)
	cfg := icmp.InterfaceConfig{Router: true, Advertise: advertising(), Rand: rand.New(rand.NewPCG(1, 1))}
	r := icmp.NewInterface(l.now, cfg)
	var times []clock.Time
	run := func(d time.Duration) {
		end := l.now.Add(d)
		for {
			var o icmp.Outgoing
			for r.Output(l.now, &o) {
				if m, ok := icmp.Parse(o.Payload, o.Src, o.Dst); ok && m.Type == icmp.TypeRouterAdvert6 {
					assert.Equal(t, allNodes, o.Dst)
					times = append(times, l.now)
					d, refused := icmp.ParseDiscovery(&m, o.Src, o.Dst, o.HopLimit)
					assert.Equal(t, icmp.Accepted, refused)
					assert.Equal(t, 1800*time.Second, d.Advert.Lifetime)
				}
			}
			next := r.Deadline()
			if next > end {
				break
			}
			l.now = max(l.now, next)
			r.Advance(l.now)
		}
		l.now = end
	}
	run(2 * time.Hour)
	require.Greater(t, len(times), 12)
	for k := range times[1:] {
		gap := times[k+1].Sub(times[k])
		if k < 2 {
			assert.LessOrEqual(t, gap, 16*time.Second)
		} else {
			assert.True(t, gap >= 200*time.Second && gap <= 600*time.Second, gap)
		}
	}
	solicit := icmp.Discovery{Type: icmp.TypeRouterSolicit6, SourceLink: []byte{6, 5, 4, 3, 2, 1}}
	m := solicit.Message()
	run(10 * time.Second)
	asked := l.now
	before := len(times)
	for range 100 {
		require.Equal(t, icmp.Accepted, r.Input(l.now, &m, hostOne, netip.MustParseAddr("ff02::2"), 255))
		run(100 * time.Millisecond)
	}
	answers := times[before:]
	require.NotEmpty(t, answers)
	assert.LessOrEqual(t, answers[0].Sub(asked), 500*time.Millisecond)
	assert.LessOrEqual(t, len(answers), 4, "in ten seconds")
	for k := range answers[1:] {
		assert.GreaterOrEqual(t, answers[k+1].Sub(answers[k]), 3*time.Second)
	}
	r.Sent(l.now, hostOne, packet6(17))
	require.Equal(t, hostOne, r.Neighbors(l.now)[0].Addr)
	isRouter := func() bool { return r.Neighbors(l.now)[0].Router }
	assert.False(t, isRouter())
	advert := (&icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: hostOne, Router: true}).Message()
	require.Equal(t, icmp.Accepted, r.Input(l.now, &advert, hostOne, allNodes, 255))
	assert.True(t, isRouter())
	ns := (&icmp.Discovery{Type: icmp.TypeNeighborSolicit, Target: r.Addresses()[0].Prefix.Addr(), SourceLink: []byte{6, 5, 4, 3, 2, 1}}).Message()
	require.Equal(t, icmp.Accepted, r.Input(l.now, &ns, hostOne, r.Addresses()[0].Prefix.Addr(), 255))
	assert.True(t, isRouter(),
		"RFC 4861 §7.2.3: a neighbor solicitation does not change the router flag")
	r.Input(l.now, &m, hostOne, netip.MustParseAddr("ff02::2"), 255)
	assert.False(t, isRouter(), "RFC 4861 §6.2.6: a router does not solicit routers")
}

// RFC 7559 §2: a host without a router keeps soliciting. The interval starts at 4 s and doubles up
// to an hour, each time with a random change of up to a tenth. A router's answer ends the
// solicitations, unless the router is no default router.
func TestRFC7559_2_NoRouter(t *testing.T) {
	l := newLink6(t)
	a := l.add(1, icmp.InterfaceConfig{})
	var at []time.Duration
	begin := l.now
	for range 100_000 {
		l.run(time.Second)
		for _, s := range l.sent() {
			if s == "A rs group" {
				at = append(at, l.now.Sub(begin))
			}
		}
	}
	require.Greater(t, len(at), 30)
	want := 4 * time.Second
	for k := 1; k < len(at); k++ {
		assert.InDelta(t, float64(want), float64(at[k]-at[k-1]), float64(want)/10+float64(2*time.Second), k)
		want = min(2*(at[k]-at[k-1]), time.Hour)
	}
	tell := func(lifetime time.Duration) {
		m := (&icmp.Discovery{Type: icmp.TypeRouterAdvert6, Advert: icmp.Advert{Lifetime: lifetime}}).Message()
		require.Equal(t, icmp.Accepted, a.Input(l.now, &m, router6, allNodes, 255))
	}
	tell(0)
	l.run(3 * time.Hour)
	assert.Contains(t, l.sent(), "A rs group")
	tell(24 * time.Hour)
	l.run(3 * time.Hour)
	assert.NotContains(t, l.sent(), "A rs group")
}

// RFC 4861 §4.5 and §8.3: a redirect changes nothing, because any node can forge it.
func TestRedirectsAreIgnored(t *testing.T) {
	l, a, b := twoHosts(t)
	d := icmp.Discovery{Type: icmp.TypeRedirect6, Target: b.local(), Destination: hostTwo}
	m := d.Message()
	require.Equal(t, icmp.Accepted, a.Input(l.now, &m, router6, a.local(), 255))
	assert.Empty(t, a.Neighbors(l.now))
	require.Equal(t, icmp.RefusedHopLimit, a.Input(l.now, &m, router6, a.local(), 254))
}

// An owner that does not drain Output loses messages, not memory.
func TestOutputIsBounded(t *testing.T) {
	l, a, b := twoHosts(t)
	d := icmp.Discovery{Type: icmp.TypeNeighborSolicit, Target: a.local()}
	m := d.Message()
	for range 1000 {
		a.Input(l.now, &m, b.local(), icmp.SolicitedNode(a.local()), 255)
	}
	answers := 0
	for o := (icmp.Outgoing{}); a.Output(l.now, &o); answers++ {
		assert.Equal(t, b.local(), o.Dst)
	}
	assert.Equal(t, 256, answers)
}

// RFC 4861 §6.3.4: a router sets the reachable time and the interval of solicitations, within limits.
func TestRFC4861_6_3_4_Timers(t *testing.T) {
	for _, row := range []struct{ retransmit, want time.Duration }{
		{0, time.Second},
		{2 * time.Second, 2 * time.Second},
		{time.Millisecond, 100 * time.Millisecond},
		{24 * time.Hour, 10 * time.Second},
	} {
		l, a, b := twoHosts(t)
		l.hear(a, icmp.Advert{Retransmit: row.retransmit, Reachable: 24 * time.Hour})
		b.down = true
		l.send(a, b.local())
		l.run(5*time.Second + 3*row.want - 1)
		assert.Equal(t, "PROBE", l.state(a, b.local()), row)
		l.run(1)
		assert.Empty(t, l.state(a, b.local()), row)
		b.down = false
		l.send(a, b.local())
		l.run(5 * time.Second)
		l.run(30*time.Minute - 1)
		assert.Equal(t, "REACHABLE", l.state(a, b.local()))
		l.run(time.Hour + 1)
		assert.Equal(t, "STALE", l.state(a, b.local()), "at most an hour and a half")
	}
}

// FuzzInterface gives an interface any messages at any times. Its state stays bounded, and its
// messages are valid.
func FuzzInterface(f *testing.F) {
	script := func(steps ...string) (all []byte) {
		for k, s := range steps {
			b := unhex(f, s)[40:]
			all = append(append(all, byte(k), byte(len(b))), b...)
		}
		return all
	}
	f.Add(script(dadPacket, rsPacket, nsPacket, naPacket, unicastNA))
	ra := icmp.Discovery{Type: icmp.TypeRouterAdvert6, Advert: *advertising(), SourceLink: []byte{1, 2, 3, 4, 5, 6}}
	b := ra.Message().Append(nil, router6, allNodes)
	f.Add(append([]byte{3, byte(len(b))}, b...))
	var flood []byte // options with many prefixes
	for k := range byte(80) {
		ra.Advert.Prefixes = []icmp.PrefixInfo{{
			Prefix: netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 1, 7: k}), 64),
			OnLink: true, Autonomous: true, Valid: time.Hour, Preferred: time.Hour,
		}}
		b := ra.Message().Append(nil, router6, allNodes)
		query := icmp.Message{Type: icmp.TypeListenerQuery, Rest: [4]byte{0xff, k}, Body: make([]byte, 20)}
		flood = append(append(flood, k&3, byte(len(b))), b...)
		flood = append(append(flood, k&16, 28), query.Append(nil, router6, allNodes)...)
	}
	f.Add(flood)
	f.Add(append(flood, 0))
	f.Fuzz(func(t *testing.T, script []byte) {
		now := clock.Time(1)
		i := icmp.NewInterface(now, icmp.InterfaceConfig{
			Rand: rand.New(rand.NewPCG(1, 2)), MTU: 1500, Router: len(script)%2 == 1, Advertise: advertising(),
		})
		sources := []netip.Addr{router6, hostOne, netip.IPv6Unspecified(), netip.MustParseAddr("fe80::2")}
		for len(script) >= 2 {
			kind, n := script[0], min(int(script[1]), len(script)-2)
			b := script[2 : 2+n]
			script = script[2+n:]
			src := sources[kind%4]
			if len(b) >= icmp.HeaderLen {
				m := icmp.Message{Type: icmp.TypeEcho6&^0xff | icmp.Type(b[0]), Code: b[1], Rest: [4]byte(b[4:]), Body: b[8:]}
				dst := allNodes
				if kind&4 != 0 {
					dst = i.Addresses()[0].Prefix.Addr()
				}
				hopLimit := uint8(255)
				if m.Type == icmp.TypeListenerQuery {
					hopLimit = 1
				}
				i.Input(now, &m, src, dst, hopLimit)
			}
			if kind&8 != 0 {
				i.Sent(now, netip.AddrFrom16([16]byte{0xfe, 0x80, 15: kind}), packet6(17))
			}
			now = now.Add(time.Duration(kind>>4) * time.Second)
			i.Advance(now)
			checkInterface(t, i, now)
			if len(i.Addresses()) == 0 {
				i.Add(now, netip.PrefixFrom(hostOne, 64))
			}
		}
	})
}

func checkInterface(t *testing.T, i *icmp.Interface, now clock.Time) {
	t.Helper()
	require.LessOrEqual(t, len(i.Neighbors(now)), 16, "one for each destination of a packet")
	require.LessOrEqual(t, len(i.Addresses()), 16)
	var o icmp.Outgoing
	for i.Output(now, &o) {
		m, ok := icmp.Parse(o.Payload, o.Src, o.Dst)
		require.True(t, ok)
		if m.Type == icmp.TypeListenerReport {
			require.Equal(t, uint8(1), o.HopLimit)
			require.Len(t, m.Body, 20*int(binary.BigEndian.Uint16(m.Rest[2:])))
			continue
		}
		_, r := icmp.ParseDiscovery(&m, o.Src, o.Dst, o.HopLimit)
		require.Equal(t, icmp.Accepted, r)
	}
	for c, ok := i.NextChange(); ok; c, ok = i.NextChange() {
		require.LessOrEqual(t, c.Kind, icmp.HopLimit)
	}
}
