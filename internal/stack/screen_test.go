package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// RFC 1122 §3.2.1.3, RFC 1812 §5.3.7, RFC 6890 §2.2: a node drops packets with invalid source or
// destination addresses, to itself or to others, and counts them by reason.
func TestScreenedAddresses(t *testing.T) {
	all, group := ip.V4(255, 255, 255, 255), ip.V4(224, 0, 0, 1)
	tests := []struct {
		src, dst netip.Addr
		reason   ip.DropReason
	}{
		{hostA, routerA, ip.DropNone},
		{hostA, hostC, ip.DropNone},
		{hostA, all, ip.DropNone},
		{hostA, group, ip.DropNone},
		{netip.Addr{}, all, ip.DropNone}, // a host without an address (RFC 1122 §3.2.1.3 (a))
		{netip.Addr{}, routerA, ip.DropMartian},
		{netip.Addr{}, group, ip.DropMartian},
		{ip.V4(0, 0, 0, 9), all, ip.DropMartian},
		{ip.V4(127, 0, 0, 1), routerA, ip.DropMartian},
		{ip.V4(127, 0, 0, 1), all, ip.DropMartian},
		{ip.V4(224, 0, 0, 9), group, ip.DropMartian},
		{ip.V4(240, 0, 0, 1), hostC, ip.DropMartian},
		{all, hostC, ip.DropMartian},
		{ip.V4(10, 0, 0, 255), hostC, ip.DropMartian}, // the link's broadcast address
		{ip.V4(10, 0, 0, 0), routerA, ip.DropMartian}, // the broadcast address of 4.2BSD
		{ip.V4(10, 1, 0, 255), hostC, ip.DropMartian}, // another link's broadcast address
		{hostA, ip.V4(127, 0, 0, 1), ip.DropMartian},
		{hostA, ip.V4(0, 0, 0, 0), ip.DropMartian},
		{hostA, ip.V4(240, 0, 0, 1), ip.DropMartian},
		{hostA, ip.V4(255, 255, 255, 254), ip.DropMartian},
		{routerA, hostC, ip.DropOwnSource},
		{routerC, group, ip.DropOwnSource},
		{routerA, routerA, ip.DropOwnSource}, // the packet of a LAND attack
		{hostA, ip.V4(224, 0, 0, 9), ip.DropGroup},
		{hostA, ip.V4(239, 9, 9, 9), ip.DropGroup},
	}
	for _, tt := range tests {
		w, _, b, _ := line(t)
		sent := ask(w, 1, 0, packetTo(tt.src, tt.dst))
		if tt.reason == ip.DropNone {
			assert.Empty(t, drops(b, 0), "%v", tt)
			assert.Equal(t, tt.dst == hostC, len(sent) == 1, "%v", tt)
			continue
		}
		assert.Equal(t, map[string]uint64{tt.reason.String(): 1}, drops(b, 0), "%v", tt)
		assert.Empty(t, sent, "%v", tt)
	}
}

// A node with many addresses recognizes each of them, as a node with few does.
func TestNodeWithManyAddresses(t *testing.T) {
	w := newWorld(t)
	cfg := stack.Config{}
	for i := range byte(12) {
		f := face(string('a'+rune(i)), "10.0.0.1/24")
		a := f.Addr.Addr().As4()
		a[2] = i
		f.Addr = prefixOf(netip.AddrFrom4(a), 24)
		cfg.Interfaces = append(cfg.Interfaces, f)
	}
	s := w.add(cfg)
	for i := range byte(12) {
		input(s, w.now, frame(packetTo(ip.V4(10, 0, i, 1), ip.V4(10, 0, 0, 1))))
		input(s, w.now, frame(packetTo(ip.V4(10, 0, 0, 9), ip.V4(10, 0, i, 1))))
	}
	assert.Len(t, s.Events(), 12)
	assert.Equal(t, map[string]uint64{"own address as source": 12}, drops(s, 0))
}

// RFC 3704 §2.2, §2.4: a knob selects how a packet's source is checked against the routes. The
// default is off, because a ring may have asymmetric routes.
func TestReversePaths(t *testing.T) {
	near, far, elsewhere := hostA, ip.V4(10, 1, 0, 7), ip.V4(172, 16, 0, 1)
	for mode, want := range map[stack.ReversePath][]bool{
		stack.ReverseOff:    {true, true, true},
		stack.ReverseLoose:  {true, true, false},
		stack.ReverseStrict: {true, false, false},
	} {
		w, _, b, _ := line(t)
		require.NoError(t, b.SetKnobs(stack.Knobs{IP: stack.IPKnobs{ReversePath: mode}}))
		for i, src := range []netip.Addr{near, far, elsewhere} {
			before := drops(b, 0)[ip.DropReversePath.String()]
			ask(w, 1, 0, packetTo(src, routerA))
			assert.Equal(t, want[i], drops(b, 0)[ip.DropReversePath.String()] == before, "%v %v", mode, src)
		}
		ask(w, 1, 0, packetTo(netip.Addr{}, ip.V4(255, 255, 255, 255)))
		assert.Zero(t, drops(b, 0)[ip.DropMartian.String()], "a node without an address is on the link")
	}
	_, _, b, _ := line(t)
	require.ErrorIs(t, b.SetKnobs(stack.Knobs{IP: stack.IPKnobs{ReversePath: 3}}), stack.ErrKnob)
	for _, mode := range []stack.ReversePath{stack.ReverseOff, stack.ReverseLoose, stack.ReverseStrict} {
		got, ok := stack.ParseReversePath(mode.String())
		assert.True(t, ok)
		assert.Equal(t, mode, got)
	}
	_, ok := stack.ParseReversePath("tight")
	assert.False(t, ok)
}

// A cached verdict on a pair of addresses applies only to the interface at which the packet arrived,
// and only until a knob changes.
func TestCachedVerdictExpires(t *testing.T) {
	w, _, b, _ := line(t)
	elsewhere := ip.V4(172, 16, 0, 1)
	knobs := func(mode stack.ReversePath) {
		require.NoError(t, b.SetKnobs(stack.Knobs{IP: stack.IPKnobs{ReversePath: mode}}))
	}
	judged := func(iface int) bool {
		before := drops(b, iface)[ip.DropReversePath.String()]
		ask(w, 1, iface, packetTo(elsewhere, routerA))
		return drops(b, iface)[ip.DropReversePath.String()] == before
	}
	knobs(stack.ReverseOff)
	assert.True(t, judged(0))
	assert.True(t, judged(0), "the cached verdict")
	knobs(stack.ReverseLoose)
	assert.False(t, judged(0), "there is no route to the source")
	require.NoError(t, b.Routing().Add(w.now, stack.Route{
		Prefix: netip.MustParsePrefix("172.16.0.0/16"), Via: hostA,
	}))
	knobs(stack.ReverseStrict)
	assert.True(t, judged(0))
	assert.False(t, judged(1), "the route leads to another interface")
}

// RFC 1812 §5.2.3: a router accepts a directed broadcast to another of its links. RFC 2644 §2: it
// forwards a copy to each node on that link only if the knob is on.
func TestDirectedBroadcasts(t *testing.T) {
	w := newWorld(t)
	known := func(name, prefix string, neighbors ...string) stack.Interface {
		f := face(name, prefix)
		for _, n := range neighbors {
			f.Neighbors = append(f.Neighbors, addr(n))
		}
		return f
	}
	r := w.add(stack.Config{
		Forwarding: true,
		Interfaces: []stack.Interface{
			known("if0", "10.0.0.2/24", "10.0.0.1"),
			known("if1", "10.1.0.1/24", "10.1.0.2", "10.1.0.3"),
		},
	})
	all := ip.V4(10, 1, 0, 255)
	assert.Empty(t, ask(w, 0, 0, packetTo(hostA, all)))
	assert.Len(t, r.Events(), 1)
	require.NoError(t, r.SetKnobs(stack.Knobs{IP: stack.IPKnobs{DirectedBroadcast: true}}))
	sent := ask(w, 0, 0, packetTo(hostA, all, 7, 7, 4, 0, 0, 0, 0, 0))
	require.Len(t, sent, 2)
	for _, p := range sent {
		h, _, drop := ip.ParseHeader(p)
		require.Equal(t, ip.DropNone, drop)
		assert.Equal(t, uint8(8), h.TTL)
		assert.Equal(t, []byte{7, 7, 8, 10, 1, 0, 1, 0}, h.Options)
	}
	last := packetTo(hostA, all)
	h, _, _ := ip.ParseHeader(last)
	h.TTL = 1
	assert.Empty(t, ask(w, 0, 0, h.Append(nil)), "the TTL has expired")
	assert.Len(t, r.Events(), 2)
	assert.Empty(t, drops(r, 0))
}

// RFC 1812 §5.3.13.5, §5.3.13.6: a router records the address of the outgoing interface in a record
// route or timestamp option, contrary to the advice of RFC 7126 §4.5.5 and §4.7.5. It leaves other
// options unchanged.
func TestOptionsOfForwardedPackets(t *testing.T) {
	w, _, _, c := line(t)
	w.now = w.now.Add(7 * time.Millisecond)
	for _, tt := range []struct{ options, want []byte }{
		{[]byte{7, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0}, []byte{7, 11, 8, 10, 1, 0, 1, 0, 0, 0, 0, 0}},
		{[]byte{7, 7, 8, 9, 9, 9, 9, 0}, []byte{7, 7, 8, 9, 9, 9, 9, 0}},
		{[]byte{68, 8, 5, 0, 0, 0, 0, 0}, []byte{68, 8, 9, 0, 0, 0, 0, 7}},
		{
			[]byte{68, 12, 5, 3, 10, 0, 0, 2, 0, 0, 0, 0},
			[]byte{68, 12, 13, 3, 10, 0, 0, 2, 0, 0, 0, 7},
		},
		{[]byte{148, 4, 0, 0}, []byte{148, 4, 0, 0}},
		{[]byte{130, 4, 1, 2}, []byte{130, 4, 1, 2}},
		{[]byte{0x9e, 3, 7, 1}, []byte{0x9e, 3, 7, 1}},
	} {
		sent := ask(w, 1, 0, packetTo(hostA, hostC, tt.options...))
		require.Len(t, sent, 1, "%v", tt.options)
		h, _, drop := ip.ParseHeader(sent[0])
		require.Equal(t, ip.DropNone, drop, "RFC 1624 §3: the checksum is right: %v", tt.options)
		assert.Equal(t, tt.want, h.Options)
		assert.Equal(t, uint8(8), h.TTL)
	}

	// RFC 7126 §4.3.5, §4.4.5, RFC 1812 §5.3.13.4: source routes are refused. A host silently drops
	// packets to other nodes, whatever their options.
	for _, options := range [][]byte{
		{131, 7, 4, 1, 2, 3, 4, 0}, {137, 7, 8, 1, 2, 3, 4, 0}, {7, 7, 3, 0, 0, 0, 0, 0},
	} {
		assert.Empty(t, ask(w, 2, 0, packetTo(hostA, ip.V4(10, 1, 0, 9), options...)))
		assert.Len(t, ask(w, 2, 0, packetTo(hostA, hostC, options...)), 1)
	}
	assert.Equal(t, map[string]uint64{"bad ip option": 2, "source route": 4}, drops(c, 0))
}
