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

// speaker is a router that speaks RIPv2 on those interfaces.
func speaker(faces ...stack.Interface) stack.Config {
	return stack.Config{
		Interfaces: faces, Forwarding: true, RIP: &rip.Config{Dialect: rip.RIPv2},
	}
}

// onSharedLink is an interface on the link where all nodes know each other.
func onSharedLink(own string) stack.Interface {
	f := face("if0", own+"/24")
	for _, other := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		if other != own {
			f.Neighbors = append(f.Neighbors, addr(other))
		}
	}
	return f
}

// Two routers and a host share a link. The routers send multicast messages, which the host does not
// receive. RFC 2453 §4.4: if a router's static route leads via the host, it announces the host as
// next hop, so that the other router sends there directly. RFC 2453 §4.2: the announcement has the
// route's tag.
func TestRIPv2OnASharedLink(t *testing.T) {
	w := newWorld(t)
	w.hub = true
	cfg := speaker(onSharedLink("10.0.0.1"), face("if1", "10.1.0.1/24"))
	cfg.Routes = []stack.Route{route("172.16.0.0/12", "10.0.0.3")}
	cfg.Redistribute = &rip.External{Tag: 5, Metric: 3}
	r1, r2 := w.add(cfg), w.add(speaker(onSharedLink("10.0.0.2"), face("if1", "10.2.0.1/24")))
	host := w.add(stack.Config{Interfaces: []stack.Interface{onSharedLink("10.0.0.3")}})

	var seen []ip.Header
	r1.SetTap(func(_ clock.Time, i int, dir stack.Direction, _ ip.DropReason, pieces [][]byte) {
		h, payload, reason := ip.ParseHeader(pieces[0])
		require.Equal(t, ip.DropNone, reason)
		if dir == stack.Outbound && i == 0 {
			u, _, ok := udp.ParseHeader(payload)
			require.True(t, ok)
			assert.Equal(t, [2]uint16{520, 520}, [2]uint16{u.SrcPort, u.DstPort}, "RFC 2453 §3.6")
			assert.True(t, u.Verify(h.Src, h.Dst, payload))
			seen = append(seen, h)
		}
	})
	w.run(time.Minute)
	require.NotEmpty(t, seen)
	multicasts := 0
	for _, h := range seen {
		assert.Equal(t, ip.V4(10, 0, 0, 1), h.Src, "an address on the link")
		assert.Equal(t, uint8(1), h.TTL, "RFC 2453 §4.5: no router forwards the message")
		if h.Dst == ip.V4(224, 0, 0, 9) {
			multicasts++
		}
	}
	assert.Greater(t, multicasts, 2)

	got, ok := r2.Routing().Lookup(addr("10.1.0.7"))
	require.True(t, ok)
	assert.Equal(t, addr("10.0.0.1"), got.NextHop)
	assert.Equal(t, 2, got.Cost)
	got, _ = r2.Routing().Lookup(addr("172.20.0.1"))
	assert.Equal(t, addr("10.0.0.3"), got.NextHop, "not via router 1")
	assert.Equal(t, 4, got.Cost)
	for _, r := range r2.RIPs()[0].Info(w.now).Routes {
		if r.Prefix == pfx("172.16.0.0/12") {
			assert.Equal(t, 5, r.Tag)
			assert.Equal(t, addr("10.0.0.1"), r.From)
		}
	}
	assert.Zero(t, host.Interfaces().Infos()[0].Out.Packets, "the host sends nothing")

	t.Log("# the other interface goes down: its network is withdrawn at once")
	r1.SetUp(w.now, 1, false)
	w.run(5 * time.Second)
	_, ok = r2.Routing().Lookup(addr("10.1.0.7"))
	assert.False(t, ok)

	t.Log("# static routes over an interface that goes down are withdrawn, too")
	r1.SetUp(w.now, 0, false)
	w.run(5 * time.Second)
	_, ok = r2.Routing().Lookup(addr("172.20.0.1"))
	assert.False(t, ok, "the route was withdrawn")
	r1.SetUp(w.now, 0, true)
	w.run(10 * time.Second)
	_, ok = r2.Routing().Lookup(addr("172.20.0.1"))
	assert.True(t, ok)
}

// TestRIPv2Refuses checks that refused messages are counted, and that no other socket can bind
// RIP's port.
func TestRIPv2Refuses(t *testing.T) {
	w := newWorld(t)
	s := w.add(speaker(face("if0", "10.0.0.1/24")))
	_, err := s.Datagrams().Bind(addrPort(addr("0.0.0.0"), 520))
	require.ErrorIs(t, err, udp.ErrPortInUse)
	message := rip.Packet2{Command: rip.Response, Version: 2, Entries: []rip.Entry2{
		{Family: 2, Addr: 0x0a050000, Mask: 0xffff0000, Metric: 1},
	}}.Append(nil)
	send := func(src, dst netip.Addr, from uint16, spoil byte) {
		p := udp.Header{SrcPort: from, DstPort: rip.Port}.Append(nil, src, dst, message)
		p[6] ^= spoil
		h := ip.Header{Protocol: ip.ProtoUDP, TTL: 1, Src: src, Dst: dst, TotalLen: 20 + len(p)}
		b := append(h.Append(nil), p...)
		input(s, w.now, buffer.Frame{Data: b, Size: len(b)})
	}
	group, own := ip.V4(224, 0, 0, 9), ip.V4(10, 0, 0, 1)
	send(ip.V4(10, 0, 0, 2), group, 521, 0)
	send(ip.V4(10, 7, 0, 2), own, rip.Port, 0)
	send(ip.V4(10, 0, 0, 2), own, rip.Port, 1)
	assert.Equal(t, uint64(2), drops(s, 0)[ip.DropRIP.String()])
	assert.Equal(t, uint64(1), drops(s, 0)[ip.DropUDPChecksum.String()])
	_, ok := s.Routing().Lookup(addr("10.5.0.1"))
	assert.False(t, ok)
	var reasons []string
	for _, r := range s.RIPs()[0].Info(w.now).Refused {
		reasons = append(reasons, r.Reason)
	}
	assert.Equal(t, []string{"from an address that is not on the link", "response not from RIP's port"}, reasons)

	send(ip.V4(10, 0, 0, 2), group, rip.Port, 0)
	got, ok := s.Routing().Lookup(addr("10.5.0.1"))
	require.True(t, ok)
	assert.Equal(t, addr("10.0.0.2"), got.NextHop)

	t.Log("# RIP reports its events while it is watched")
	s.RIPs()[0].Speaker().SetWatched(true)
	send(ip.V4(10, 0, 0, 3), group, 9, 0)
	events := s.Events()
	require.Len(t, events, 1)
	assert.Equal(t, "message from 10.0.0.3 refused: response not from RIP's port",
		events[0].RIP.String())
}
