package icmp_test

import (
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
	hidden string // kind of message that sent leaves out
	tb     testing.TB
	now    clock.Time
	nodes  []*node6
	log    []string   // messages on the link
	src    netip.Addr // source of the last message
}

// node6 is a node on a link6.
type node6 struct {
	*icmp.Interface
	name    string
	down    bool     // the node neither sends nor receives
	changes []string // changes that the interface reported
}

func newLink6(t *testing.T) *link6 {
	t.Helper()
	return &link6{tb: t, now: 1}
}

// add adds a node. The seed makes its identifiers and delays differ from those of others.
func (l *link6) add(seed byte, cfg icmp.InterfaceConfig) *node6 {
	n := &node6{name: string('A' + rune(len(l.nodes)))}
	cfg.Rand = rand.New(rand.NewPCG(uint64(seed), 6))
	cfg.Name, cfg.Secret = "eth0", []byte{seed}
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

// transfer delivers a message to its receivers on the link.
func (l *link6) transfer(from *node6, o *icmp.Outgoing) {
	if from.down {
		return
	}
	l.log, l.src = append(l.log, l.text(from, o)), o.Src
	for _, n := range l.nodes {
		switch {
		case n == from || n.down:
		case o.Dst.IsMulticast() && n.IsMember(o.Dst), !o.Dst.IsMulticast() && n.has(o.Dst):
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

// run advances the time.
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

// send reports that a node has sent a packet to an address on the link.
func (l *link6) send(from *node6, to netip.Addr) {
	packet := packet6(17)
	src := from.local().As16()
	copy(packet[8:], src[:])
	from.Sent(l.now, to, packet)
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

// twoHosts returns a link with two hosts that have their addresses. Its log omits their router
// solicitations.
func twoHosts(t *testing.T) (l *link6, a, b *node6) {
	t.Helper()
	l = newLink6(t)
	l.hidden = "rs"
	a, b = l.add(1, icmp.InterfaceConfig{}), l.add(2, icmp.InterfaceConfig{})
	l.run(time.Minute)
	l.sent()
	return l, a, b
}

// RFC 4861 §7.2.4, §7.2.5, §7.3.2 and §7.3.3: a node probes a neighbor that it sends packets to,
// and the neighbor answers.
func TestRFC4861_7_3_3_Probe(t *testing.T) {
	l, a, b := twoHosts(t)
	l.send(a, b.local())
	assert.Equal(t, "DELAY", l.state(a, b.local()))
	packet, to := packet6(17), b.local()
	assert.Zero(t, testing.AllocsPerRun(100, func() { a.Sent(l.now, to, packet) }))
	l.run(5*time.Second - 1)
	assert.Empty(t, l.sent())
	l.run(1)
	assert.Equal(t, []string{"A ns unicast", "B na unicast"}, l.sent(), "A probes B after 5 s")
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
	assert.Empty(t, b.Neighbors(l.now), "RFC 4861 §7.2.3: a solicitation creates no neighbor")
	l.send(a, b.local())
	l.run(15*time.Second - 1)
	assert.Equal(t, "REACHABLE", l.state(a, b.local()), "RFC 4861 §6.3.2: half of 30 s at least")
	l.run(30*time.Second + 1)
	assert.Equal(t, "STALE", l.state(a, b.local()))
	assert.Empty(t, l.sent(), "nothing is sent to a stale neighbor")
}

// RFC 4861 §7.3.3 and §10: a host that does not answer three probes, one second apart, is forgotten.
func TestRFC4861_7_3_Unreachable(t *testing.T) {
	l, a, b := twoHosts(t)
	b.down = true
	l.send(a, b.local())
	l.run(5*time.Second + 3*time.Second - 1)
	assert.Equal(t, "PROBE", l.state(a, b.local()))
	assert.Equal(t, []string{"A ns unicast", "A ns unicast", "A ns unicast"}, l.sent())
	l.run(1)
	assert.Empty(t, a.Neighbors(l.now))
	b.down = false
	l.send(a, b.local())
	l.run(5 * time.Second)
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
}

// RFC 4861 §7.2.5: the changes that an advertisement causes depend on the neighbor's state and the
// flags.
func TestRFC4861_7_2_5_Advertisements(t *testing.T) {
	for _, row := range []struct {
		stale, solicited, override bool
		want                       string
	}{
		{false, false, false, "REACHABLE"},
		{false, false, true, "REACHABLE"},
		{true, false, false, "STALE"},
		{true, false, true, "STALE"},
		{true, true, false, "REACHABLE"},
		{true, true, true, "REACHABLE"},
	} {
		l, a, b := twoHosts(t)
		l.send(a, b.local())
		l.run(5 * time.Second)
		if row.stale {
			l.run(time.Minute)
		}
		d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: b.local(), Solicited: row.solicited, Override: row.override}
		m := d.Message()
		require.Equal(t, icmp.Accepted, a.Input(l.now, &m, b.local(), a.local(), 255))
		assert.Equal(t, row.want, l.state(a, b.local()), "%+v", row)
	}
	l, a, _ := twoHosts(t)
	d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: router6, Override: true}
	m := d.Message()
	a.Input(l.now, &m, router6, allNodes, 255)
	assert.Empty(t, a.Neighbors(l.now), "an advertisement creates no neighbor")
}

// RFC 6583 §7.1: packets to nonexistent addresses do not evict existing neighbors.
func TestNeighborCacheIsBounded(t *testing.T) {
	const most = 512
	l, a, b := twoHosts(t)
	l.send(a, b.local())
	l.run(5 * time.Second)
	for k := range most + 100 {
		l.send(a, netip.AddrFrom16([16]byte{0xfe, 0x80, 13: 1, 14: byte(k >> 8), 15: byte(k)}))
		require.LessOrEqual(t, len(a.Neighbors(l.now)), most)
	}
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
	l.run(time.Minute)
	assert.Len(t, a.Neighbors(l.now), 1)
}

// RFC 4862 §2, §5.3 and §5.4: an address is tentative until one solicitation has found no other
// node with it. The link-local address is the first.
func TestRFC4862_5_4_Detection(t *testing.T) {
	l := newLink6(t)
	a := l.add(1, icmp.InterfaceConfig{})
	assert.Equal(t, icmp.Tentative, a.Addresses()[0].State)
	assert.True(t, a.IsMember(icmp.SolicitedNode(a.local())))
	assert.Equal(t, "tentative", a.Addresses()[0].State.String())
	a.JoinGroup(l.now, group6)
	l.run(time.Second)
	assert.NotContains(t, l.log, "A mld group", "no valid source address")
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
	n := l.add(3, icmp.InterfaceConfig{LinkLocal: router6})
	assert.Equal(t, router6, n.local(), "RFC 4291 §2.5.6")
}

// RFC 4862 §5.4.3, §5.4.4 and §5.4.5: a second node has the address of another, or both detect
// duplicates at the same time.
func TestRFC4862_5_4_Duplicates(t *testing.T) {
	l, a, b := twoHosts(t)
	a.Add(l.now, netip.PrefixFrom(hostOne, 64))
	l.run(3 * time.Second)
	b.Add(l.now, netip.PrefixFrom(hostOne, 64))
	l.run(3 * time.Second)
	assert.Contains(t, b.changes, "duplicate 2001:db8::1/64")
	assert.False(t, b.has(hostOne))
	assert.False(t, b.IsMember(icmp.SolicitedNode(hostOne)))
	assert.True(t, a.has(hostOne))
	assert.Contains(t, l.sent(), "A na group", "RFC 4861 §7.2.4: the answer to a detection goes to all nodes")

	a.Add(l.now, netip.PrefixFrom(hostTwo, 64))
	b.Add(l.now, netip.PrefixFrom(hostTwo, 64))
	l.run(3 * time.Second)
	assert.False(t, a.has(hostTwo) && b.has(hostTwo), "at most one wins")

	d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: hostOne}
	m := d.Message()
	a.Input(l.now, &m, b.local(), allNodes, 255)
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

// RFC 7217 §5, §6 and §7: an identifier depends on the interface and the secret. After three
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
	a.Sent(l.now, b.local().WithZone("0"), packet6(17))
	assert.Equal(t, b.local(), a.Neighbors(l.now)[0].Addr)
	d := icmp.Discovery{Type: icmp.TypeNeighborAdvert, Target: b.local(), Solicited: true}
	m := d.Message()
	require.Equal(t, icmp.Accepted, a.Input(l.now, &m, b.local().WithZone("0"), a.local().WithZone("0"), 255))
	assert.Equal(t, "REACHABLE", l.state(a, b.local()))
	a.JoinGroup(l.now, group6.WithZone("0"))
	assert.True(t, a.IsMember(group6))
	assert.True(t, a.IsMember(allNodes.WithZone("0")))
	a.LeaveGroup(l.now, group6.WithZone("0"))
	assert.False(t, a.IsMember(group6))
}
