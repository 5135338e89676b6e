package icmp_test

import (
	"bytes"
	"fmt"
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

// link6 is a link with a broadcast domain, in virtual time and without delay.
type link6 struct {
	hidden string // kind of messages that sent leaves out
	tb     testing.TB
	now    clock.Time
	nodes  []*node6
	log    []string   // messages
	src    netip.Addr // of the last
}

// node6 is a node on a link6.
type node6 struct {
	*icmp.Interface
	name    string
	link    []byte
	down    bool     // it neither sends nor receives
	changes []string // of the interface
	got     []string // packets of Resolve that arrived here
	lost    []string // packets that were reported unreachable
}

func newLink6(t *testing.T) *link6 {
	t.Helper()
	return &link6{tb: t, now: 1}
}

// add adds a node. The seed makes its identifiers and delays differ from those of others.
func (l *link6) add(seed byte, cfg icmp.InterfaceConfig) *node6 {
	n := &node6{name: string('A' + rune(len(l.nodes))), link: []byte{2, 0, 0, 0, 0, seed}}
	cfg.Rand = rand.New(rand.NewPCG(uint64(seed), 6))
	cfg.Name, cfg.Secret = "eth0", []byte{seed}
	if cfg.Link == nil {
		cfg.Link = n.link
	}
	n.Interface = icmp.NewInterface(l.now, cfg)
	l.nodes = append(l.nodes, n)
	return n
}

// local is a node's link-local address.
func (n *node6) local() netip.Addr {
	for _, a := range n.Addresses() {
		if a.Prefix.Addr().IsLinkLocalUnicast() {
			return a.Prefix.Addr()
		}
	}
	return netip.Addr{}
}

func (n *node6) has(a netip.Addr) bool {
	return slices.ContainsFunc(n.Addresses(), func(i icmp.AddressInfo) bool { return i.Prefix.Addr() == a })
}

// transfer delivers a message.
func (l *link6) transfer(from *node6, o *icmp.Outgoing) {
	if o.Unreachable {
		from.lost = append(from.lost, string(o.Packet[40:]))
		return
	}
	if from.down {
		return
	}
	if o.Packet == nil {
		l.log, l.src = append(l.log, l.text(from, o)), o.Src
	}
	for _, n := range l.nodes {
		switch {
		case n == from || n.down:
		case o.Dst.IsMulticast() && n.IsMember(o.Dst),
			!o.Dst.IsMulticast() && n.has(o.Dst) && (o.Link == nil || bytes.Equal(o.Link, n.link)):
			if o.Packet != nil {
				n.got = append(n.got, string(o.Packet[40:]))
				continue
			}
			m, ok := icmp.Parse(o.Payload, o.Src, o.Dst)
			require.True(l.tb, ok)
			n.Input(l.now, &m, o.Src, o.Dst, o.HopLimit)
			l.follow(n)
		}
	}
}

// text describes a message: its sender, kind and destination.
func (l *link6) text(from *node6, o *icmp.Outgoing) string {
	m, ok := icmp.Parse(o.Payload, o.Src, o.Dst)
	require.True(l.tb, ok)
	kind := map[icmp.Type]string{
		icmp.TypeRouterSolicit6: "rs", icmp.TypeRouterAdvert6: "ra", icmp.TypeNeighborSolicit: "ns",
		icmp.TypeNeighborAdvert: "na", icmp.TypeListenerReport: "mld",
	}[m.Type]
	if kind != "mld" {
		require.Equal(l.tb, uint8(255), o.HopLimit)
	}
	to := "unicast"
	if o.Dst.IsMulticast() {
		to = "group"
	}
	if o.Src.IsUnspecified() {
		kind = "dad-" + kind
	}
	return fmt.Sprintf("%s %s %s", from.name, kind, to)
}

func (l *link6) follow(n *node6) {
	for c, ok := n.NextChange(); ok; c, ok = n.NextChange() {
		names := []string{"preferred", "deprecated", "removed", "duplicate", "on-link", "off-link", "router", "mtu", "hops"}
		switch {
		case c.Prefix.IsValid():
			n.changes = append(n.changes, fmt.Sprintf("%s %v", names[c.Kind], c.Prefix))
		case c.Kind == icmp.RouterSelected:
			n.changes = append(n.changes, fmt.Sprintf("router %v", c.Router))
		default:
			n.changes = append(n.changes, fmt.Sprintf("%s %d", names[c.Kind], c.Value))
		}
	}
}

// run lets time pass.
func (l *link6) run(d time.Duration) {
	end := l.now.Add(d)
	for steps := 0; ; steps++ {
		require.Less(l.tb, steps, 1_000_000)
		next := clock.Never
		for _, n := range l.nodes {
			next = clock.Earliest(next, n.Deadline())
		}
		if next == clock.Never || next > end {
			break
		}
		l.now = max(l.now, next)
		for _, n := range l.nodes {
			n.Advance(l.now)
			l.follow(n)
			var o icmp.Outgoing
			for n.Output(l.now, &o) {
				l.transfer(n, &o)
			}
		}
	}
	l.now = end
}

// send sends a packet to an address on the link.
func (l *link6) send(from *node6, to netip.Addr, text string) {
	packet := append(packet6(17), text...)
	src := from.local().As16()
	copy(packet[8:], src[:])
	if link, ok := from.Resolve(l.now, to, packet); ok {
		l.transfer(from, &icmp.Outgoing{Dst: to, Link: link, Packet: packet})
	}
	l.run(0)
}

// sent returns the messages since the last call, without membership reports.
func (l *link6) sent() []string {
	list := slices.DeleteFunc(l.log, func(s string) bool {
		return strings.Contains(s, "mld") || l.hidden != "" && strings.Contains(s, l.hidden)
	})
	l.log = nil
	return list
}

// state is the state of a neighbor, or "".
func (l *link6) state(n *node6, a netip.Addr) string {
	for _, i := range n.Neighbors(l.now) {
		if i.Addr == a {
			return i.State.String()
		}
	}
	return ""
}

// twoHosts is a link with two hosts that have their addresses. Their search for a router is not shown.
func twoHosts(t *testing.T) (l *link6, a, b *node6) {
	t.Helper()
	l = newLink6(t)
	l.hidden = "rs"
	a, b = l.add(1, icmp.InterfaceConfig{}), l.add(2, icmp.InterfaceConfig{})
	l.run(time.Minute)
	l.sent()
	return l, a, b
}

// RFC 4861 §7.2.2, §7.2.4, §7.2.5 and §7.3.2: two hosts resolve each other. The first packet waits, the
// answer comes without another resolution.
func TestRFC4861_7_2_Resolution(t *testing.T) {
	l, a, b := twoHosts(t)
	l.send(a, b.local(), "one")
	assert.Equal(t, []string{"A ns group", "B na unicast"}, l.sent())
	assert.Equal(t, []string{"one"}, b.got)
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
	assert.Equal(t, "STALE", l.state(b, a.local()), "RFC 4861 §7.2.3: it may be unreachable from here")
	l.send(a, b.local(), "two")
	assert.Empty(t, l.sent())
	packet, to := packet6(17), b.local()
	assert.Zero(t, testing.AllocsPerRun(100, func() { a.Resolve(l.now, to, packet) }))
	l.send(b, a.local(), "three")
	assert.Equal(t, "DELAY", l.state(b, a.local()))
	l.run(5 * time.Second)
	assert.Equal(t, []string{"B ns unicast", "A na unicast"}, l.sent(), "RFC 4861 §7.3.3: it is probed after 5 s")
	assert.Equal(t, "REACHABLE", l.state(b, a.local()))
	l.run(15*time.Second - 1)
	assert.Equal(t, "REACHABLE", l.state(b, a.local()), "RFC 4861 §6.3.2: half of 30 s at least")
	l.run(30*time.Second + 1)
	assert.Equal(t, "STALE", l.state(b, a.local()))
	assert.Empty(t, l.sent(), "nothing is sent to a stale neighbor")
}

// RFC 4861 §4.6.1: link-layer addresses of any length, which the option pads.
func TestLinkAddressesOfAnyLength(t *testing.T) {
	for _, n := range []int{1, 6, 7, 18} {
		l := newLink6(t)
		one, two := bytes.Repeat([]byte{1}, n), bytes.Repeat([]byte{2}, n)
		a, b := l.add(1, icmp.InterfaceConfig{Link: one}), l.add(2, icmp.InterfaceConfig{Link: two})
		a.link, b.link = one, two
		l.run(time.Minute)
		l.send(a, b.local(), "one")
		assert.Equal(t, []string{"one"}, b.got)
		assert.Equal(t, two, a.Neighbors(l.now)[0].Link)
	}
}

// RFC 4861 §7.2.2 and §10: three solicitations, one second apart; then the packet is unreachable. Of several
// the latest waits.
func TestRFC4861_7_2_2_NoAnswer(t *testing.T) {
	l, a, b := twoHosts(t)
	b.down = true
	l.send(a, b.local(), "one")
	l.send(a, b.local(), "two")
	l.run(3*time.Second - 1)
	assert.Equal(t, []string{"A ns group", "A ns group", "A ns group"}, l.sent())
	assert.Equal(t, "INCOMPLETE", l.state(a, b.local()))
	assert.Empty(t, a.lost)
	l.run(1)
	assert.Equal(t, []string{"two"}, a.lost)
	assert.Empty(t, a.Neighbors(l.now))
	b.down = false
	l.send(a, b.local(), "three")
	assert.Equal(t, []string{"three"}, b.got)
}

// RFC 4861 §7.3.1 and §7.3.3: a host vanishes. Confirmations of the upper layer delay the probes;
// without them it is forgotten after 5 s and three probes.
func TestRFC4861_7_3_Unreachable(t *testing.T) {
	l, a, b := twoHosts(t)
	l.send(a, b.local(), "one")
	l.sent()
	b.down = true
	for range 10 {
		l.run(10 * time.Second)
		l.send(a, b.local(), "more")
		a.Confirm(l.now, b.local())
	}
	assert.Empty(t, l.sent())
	l.run(time.Minute)
	l.send(a, b.local(), "last")
	assert.Equal(t, "DELAY", l.state(a, b.local()))
	l.run(5*time.Second + 3*time.Second - 1)
	assert.Equal(t, "PROBE", l.state(a, b.local()))
	assert.Equal(t, []string{"A ns unicast", "A ns unicast", "A ns unicast"}, l.sent())
	l.run(1)
	assert.Empty(t, a.Neighbors(l.now))
	a.Confirm(l.now, b.local())
	assert.Empty(t, a.Neighbors(l.now), "there is nothing to confirm")
}

// RFC 4861 §7.2.5: what an advertisement changes, by the state and its flags.
func TestRFC4861_7_2_5_Advertisements(t *testing.T) {
	other := []byte{2, 0, 0, 0, 0, 9}
	for _, row := range []struct {
		name                string
		stale               bool
		link                []byte
		solicited, override bool
		wantState           string
		wantLink            byte
	}{
		{"reachable, another address", false, other, false, false, "STALE", 2},
		{"stale, another address", true, other, true, false, "STALE", 2},
		{"override", false, other, false, true, "STALE", 9},
		{"override, solicited", false, other, true, true, "REACHABLE", 9},
		{"the same address, solicited", true, []byte{2, 0, 0, 0, 0, 2}, true, false, "REACHABLE", 2},
		{"the same address", true, []byte{2, 0, 0, 0, 0, 2}, false, true, "STALE", 2},
		{"no address, solicited", true, nil, true, false, "REACHABLE", 2},
		{"no address", false, nil, false, true, "REACHABLE", 2},
	} {
		l, a, b := twoHosts(t)
		l.send(a, b.local(), "one")
		if row.stale {
			l.run(time.Minute)
		}
		d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: b.local(), TargetLink: row.link, Solicited: row.solicited, Override: row.override}
		m := d.Message()
		require.Equal(t, icmp.Accepted, a.Input(l.now, &m, b.local(), a.local(), 255))
		n := a.Neighbors(l.now)[0]
		assert.Equal(t, row.wantState, n.State.String(), row.name)
		assert.Equal(t, row.wantLink, n.Link[5], row.name)
	}
	l, a, _ := twoHosts(t)
	d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: router6, TargetLink: other, Override: true}
	m := d.Message()
	a.Input(l.now, &m, router6, allNodes, 255)
	assert.Empty(t, a.Neighbors(l.now), "an advertisement creates no neighbor")
	l.send(a, router6, "one")
	d.TargetLink = nil
	m = d.Message()
	a.Input(l.now, &m, router6, allNodes, 255)
	assert.Equal(t, "INCOMPLETE", l.state(a, router6), "without an address it resolves nothing")
}

// RFC 6583 §7.1: packets to addresses that do not exist do not evict neighbors that do.
func TestNeighborCacheIsBounded(t *testing.T) {
	l := newLink6(t)
	a, b := l.add(1, icmp.InterfaceConfig{MaxNeighbors: 8}), l.add(2, icmp.InterfaceConfig{})
	l.run(time.Minute)
	l.send(a, b.local(), "one")
	for k := range 100 {
		l.send(a, netip.AddrFrom16([16]byte{0xfe, 0x80, 14: 1, 15: byte(k)}), "scan")
		require.LessOrEqual(t, len(a.Neighbors(l.now)), 8)
	}
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
	assert.Equal(t, uint64(93), a.Info().Evicted)
	l.run(time.Hour)
	assert.Len(t, a.lost, 7)
}

// RFC 4861 §7.2: on a link without link-layer addresses nothing waits. A neighbor that does not
// answer is probed, and packets are still sent to it.
func TestLinkWithoutAddresses(t *testing.T) {
	l := newLink6(t)
	a, b := l.add(1, icmp.InterfaceConfig{Link: []byte{}}), l.add(2, icmp.InterfaceConfig{Link: []byte{}})
	_ = b
	cfg := icmp.InterfaceConfig{Rand: rand.New(rand.NewPCG(1, 1)), Secret: []byte{3}, Manual: true}
	tun := icmp.NewInterface(l.now, cfg)
	a.Interface, a.link = tun, nil
	cfg.Secret = []byte{4}
	b.Interface, b.link = icmp.NewInterface(l.now, cfg), nil
	l.run(time.Minute)
	l.sent()
	l.send(a, b.local(), "one")
	assert.Equal(t, []string{"one"}, b.got)
	l.run(time.Minute)
	assert.Equal(t, []string{"A ns unicast", "B na unicast"}, l.sent())
	b.down = true
	l.send(a, b.local(), "two")
	l.run(time.Minute)
	assert.Empty(t, a.Neighbors(l.now))
	assert.Empty(t, a.lost)
	b.down = false
	l.send(a, b.local(), "three")
	assert.Equal(t, []string{"one", "three"}, b.got)
}

// RFC 4862 §2, §5.3 and §5.4: an address is tentative until one solicitation found no other node with
// it. The link-local one is the first.
func TestRFC4862_5_4_Detection(t *testing.T) {
	l := newLink6(t)
	a := l.add(1, icmp.InterfaceConfig{})
	assert.Equal(t, icmp.Tentative, a.Addresses()[0].State)
	assert.True(t, a.IsMember(icmp.SolicitedNode(a.local())))
	assert.Equal(t, "tentative", a.Addresses()[0].State.String())
	a.JoinGroup(l.now, group6)
	l.run(time.Second)
	assert.NotContains(t, l.log, "A mld group", "there is no source for a router to accept")
	assert.Equal(t, []string{"A dad-ns group"}, l.sent()[:1], "RFC 4862 §5.4.2: after at most a second")
	assert.Equal(t, icmp.Tentative, a.Addresses()[0].State)
	l.run(time.Second)
	assert.Contains(t, l.log, "A mld group", "RFC 3810 §5.2.13: groups are reported again")
	assert.Equal(t, []string{"preferred " + a.local().String() + "/64"}, a.changes)

	a.Add(l.now, netip.PrefixFrom(hostOne, 64))
	a.Add(l.now, netip.PrefixFrom(hostOne, 64))
	require.Len(t, a.Addresses(), 2)
	l.run(3 * time.Second)
	assert.Equal(t, "preferred 2001:db8::1/64", a.changes[1])
	a.Remove(l.now, hostOne)
	l.run(time.Second)
	assert.Equal(t, "removed 2001:db8::1/64", a.changes[2])
	assert.False(t, a.IsMember(icmp.SolicitedNode(hostOne)))

	n := l.add(3, icmp.InterfaceConfig{Transmits: -1, LinkLocal: router6})
	assert.Equal(t, router6, n.local(), "RFC 4291 §2.5.6")
	assert.Equal(t, icmp.Preferred, n.Addresses()[0].State, "RFC 4862 §5.1: no detection")
}

// RFC 4862 §5.4.3, §5.4.4 and §5.4.5: a second node with an address that another has, or detects at
// the same time.
func TestRFC4862_5_4_Duplicates(t *testing.T) {
	l, a, b := twoHosts(t)
	a.Add(l.now, netip.PrefixFrom(hostOne, 64))
	l.run(3 * time.Second)
	b.Add(l.now, netip.PrefixFrom(hostOne, 64))
	l.run(3 * time.Second)
	assert.Contains(t, b.changes, "duplicate 2001:db8::1/64")
	assert.False(t, b.has(hostOne))
	assert.True(t, a.has(hostOne))
	assert.Contains(t, l.sent(), "A na group", "RFC 4861 §7.2.4: the answer to a detection goes to all nodes")

	a.Add(l.now, netip.PrefixFrom(hostTwo, 64))
	b.Add(l.now, netip.PrefixFrom(hostTwo, 64))
	l.run(3 * time.Second)
	assert.False(t, a.has(hostTwo) && b.has(hostTwo), "at most one wins")

	d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: hostOne, TargetLink: b.link}
	m := d.Message()
	a.Input(l.now, &m, b.local(), allNodes, 255)
	assert.Equal(t, uint64(1), a.Info().Conflicts)
	assert.True(t, a.has(hostOne), "an assigned address is kept")
}

// RFC 7527 §4.2: a looped back solicitation has the nonce of this node and is not a duplicate.
func TestRFC7527_4_2_Loopback(t *testing.T) {
	l := newLink6(t)
	a := l.add(1, icmp.InterfaceConfig{})
	l.run(0)
	var o icmp.Outgoing
	for !a.Output(l.now, &o) || o.Payload[0] != icmp.TypeNeighborSolicit.Number() {
		l.now = max(l.now, a.Deadline())
		a.Advance(l.now)
	}
	m, ok := icmp.Parse(o.Payload, o.Src, o.Dst)
	require.True(t, ok)
	a.Input(l.now, &m, o.Src, o.Dst, 255)
	assert.True(t, a.has(a.local()))
	m.Body[len(m.Body)-1] ^= 1
	before := a.local()
	a.Input(l.now, &m, o.Src, o.Dst, 255)
	assert.NotEqual(t, before, a.local(), "RFC 7217 §6: another identifier is tried")
}

// RFC 7217 §5, §6 and §7: an identifier depends on the prefix, the interface and the secret. After three
// duplicates the interface gives up.
func TestRFC7217_5_Identifiers(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for _, cfg := range []icmp.InterfaceConfig{
		{Name: "eth0", Secret: []byte("s")}, {Name: "eth1", Secret: []byte("s")}, {Name: "eth0", Secret: []byte("t")},
	} {
		cfg.Rand = rand.New(rand.NewPCG(1, 1))
		a := icmp.NewInterface(1, cfg).Addresses()[0].Prefix
		assert.Equal(t, icmp.NewInterface(99, cfg).Addresses()[0].Prefix, a, "stable")
		assert.False(t, seen[a.Addr()])
		seen[a.Addr()] = true
	}
	l := newLink6(t)
	a := l.add(1, icmp.InterfaceConfig{})
	for range 3 {
		d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: a.local()}
		m := d.Message()
		require.Equal(t, icmp.Accepted, a.Input(l.now, &m, hostOne, allNodes, 255))
	}
	assert.Empty(t, a.Addresses())
	l.run(time.Minute)
	assert.Empty(t, l.sent())
}

// RFC 4007 §6: zones of the owner's addresses are ignored, because an interface has one link.
func TestInterfaceIgnoresZones(t *testing.T) {
	l, a, b := twoHosts(t)
	m := (&icmp.Discovery{Type: icmp.TypeNeighborSolicit, Target: a.local(), SourceLink: b.link}).Message()
	require.Equal(t, icmp.Accepted, a.Input(l.now, &m, b.local().WithZone("0"), a.local().WithZone("0"), 255))
	assert.Equal(t, b.local(), a.Neighbors(l.now)[0].Addr)
	a.Confirm(l.now, b.local().WithZone("0"))
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
	link, ok := a.Resolve(l.now, b.local().WithZone("0"), packet6(17))
	assert.True(t, ok)
	assert.Equal(t, b.link, link)
	a.JoinGroup(l.now, group6.WithZone("0"))
	assert.True(t, a.IsMember(group6))
	assert.True(t, a.IsMember(allNodes.WithZone("0")))
	a.LeaveGroup(l.now, group6.WithZone("0"))
	assert.False(t, a.IsMember(group6))
	a.Remove(l.now, a.local().WithZone("0"))
	assert.Empty(t, a.Addresses())
}
