package stack_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/udp"
)

var ripGroup = addr("224.0.0.9")

// shared is a link with three nodes, each of which knows the others.
func shared(t *testing.T) (w *world, nodes [3]*stack.Stack) {
	t.Helper()
	w = newWorld(t)
	w.hub = true
	for i, own := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
		f := face("if0", own+"/24")
		for _, other := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3"} {
			if other != own {
				f.Neighbors = append(f.Neighbors, addr(other))
			}
		}
		nodes[i] = w.add(stack.Config{Interfaces: []stack.Interface{f}})
	}
	return w, nodes
}

func sendTo(t *testing.T, w *world, s *stack.Stack, u *udp.Socket, to, text string) {
	t.Helper()
	require.NoError(t, s.Datagrams().Send(w.now, u, netip.MustParseAddrPort(to), []byte(text)))
	w.run(time.Millisecond)
}

// RFC 1112 §7: a datagram to a group reaches only the group's members on the link, and no longer a
// node that has left the group. A node counts datagrams to groups that it has not joined.
func TestGroupDatagramsReachMembers(t *testing.T) {
	w, n := shared(t)
	var u [3]*udp.Socket
	for i, s := range n {
		u[i] = bindUDP(t, s, "0.0.0.0:520")
	}
	require.NoError(t, n[0].Datagrams().Join(u[0], 0, ripGroup))
	require.NoError(t, n[1].Datagrams().Join(u[1], 0, ripGroup))
	sendTo(t, w, n[0], u[0], "224.0.0.9:520", "routes")
	assert.Equal(t, "10.0.0.1:520 routes", read(u[1]))
	assert.Empty(t, read(u[2]), "node 2 is not in the group")
	assert.Equal(t, map[string]uint64{"not in group": 1}, drops(n[2], 0))
	assert.Equal(t, "10.0.0.1:520 routes", read(u[0]), "RFC 1112 §6.1: the sender is a member")
	assert.Equal(t, uint64(2), n[0].Interfaces().Infos()[0].Out.Packets, "a copy for each neighbor")

	require.NoError(t, n[1].Datagrams().Leave(u[1], 0, ripGroup))
	require.ErrorIs(t, n[1].Datagrams().Leave(u[1], 0, ripGroup), udp.ErrNotMember)
	u[0].SetOptions(udp.Options{NoLoop: true})
	sendTo(t, w, n[0], u[0], "224.0.0.9:520", "again")
	for i := range u {
		assert.Empty(t, read(u[i]))
	}
}

// RFC 1112 §6.1: a datagram to a group has a TTL of 1 unless the sender sets another.
func TestMulticastTTL(t *testing.T) {
	w, n := shared(t)
	u := bindUDP(t, n[0], "10.0.0.1:520")
	ttls := map[byte]int{}
	w.mangle = func(p []byte) { ttls[p[8]]++ }
	sendTo(t, w, n[0], u, "224.0.0.9:520", "")
	u.SetOptions(udp.Options{MulticastTTL: 7, TTL: 9})
	sendTo(t, w, n[0], u, "224.0.0.9:520", "")
	sendTo(t, w, n[0], u, "10.0.0.2:520", "")
	assert.Equal(t, 2, ttls[1])
	assert.Equal(t, 2, ttls[7])
	assert.Equal(t, 1, ttls[9])
}

// RFC 1122 §3.3.6: limited and directed broadcasts reach all nodes on the link if the socket
// permits broadcasts. Otherwise Send fails.
func TestBroadcastsReachAllNodesOnTheLink(t *testing.T) {
	w, n := shared(t)
	var u [3]*udp.Socket
	for i, s := range n {
		u[i] = bindUDP(t, s, "0.0.0.0:7")
	}
	for _, to := range []string{"255.255.255.255:7", "10.0.0.255:7"} {
		u[0].SetOptions(udp.Options{})
		err := n[0].Datagrams().Send(w.now, u[0], netip.MustParseAddrPort(to), nil)
		require.ErrorIs(t, err, stack.ErrBroadcast)
		u[0].SetOptions(udp.Options{Broadcast: true})
		sendTo(t, w, n[0], u[0], to, "all")
		for i := range u {
			assert.Equal(t, "10.0.0.1:7 all", read(u[i]), "%d %s", i, to)
		}
	}
}

// RFC 5771 §4: a router does not forward datagrams to 224.0.0.0/24, whatever their TTL, and sends
// no error (RFC 1122 §3.2.2). They leave by the interface that the sender chose.
func TestGroupsStayOnTheirLink(t *testing.T) {
	w, a, b, c := line(t)
	u, all := bindUDP(t, a, "0.0.0.0:520"), bindUDP(t, b, "0.0.0.0:520")
	u.SetOptions(udp.Options{MulticastTTL: 9})
	far := bindUDP(t, c, "0.0.0.0:520")
	require.NoError(t, c.Datagrams().Join(far, 0, ripGroup))
	sendTo(t, w, a, u, "224.0.0.9:520", "near")
	assert.Equal(t, map[string]uint64{"not in group": 1}, drops(b, 0))
	assert.Zero(t, b.Interfaces().Infos()[0].Out.Packets)
	assert.Zero(t, b.Interfaces().Infos()[1].Out.Packets)

	all.SetOptions(udp.Options{Outlet: 2})
	sendTo(t, w, b, all, "224.0.0.9:520", "if1")
	assert.Equal(t, "10.1.0.1:520 if1", read(far))
	one := bindUDP(t, b, "10.1.0.1:521")
	sendTo(t, w, b, one, "224.0.0.9:520", "by its address")
	assert.Equal(t, "10.1.0.1:521 by its address", read(far))
}

func TestStackMemberships(t *testing.T) {
	w, a, b, _ := line(t)
	require.NoError(t, b.Interfaces().Join(0, ripGroup))
	require.NoError(t, b.Interfaces().Join(0, ripGroup))
	packet := packetTo(ip.V4(10, 0, 0, 1), ip.V4(224, 0, 0, 9))
	input(b, w.now, frame(packet))
	assert.Len(t, b.Events(), 1)
	require.NoError(t, b.Interfaces().Leave(0, ripGroup))
	input(b, w.now, frame(packet))
	assert.Len(t, b.Events(), 1, "the node joined twice and left once")
	require.NoError(t, b.Interfaces().Leave(0, ripGroup))
	input(b, w.now, frame(packet))
	assert.Empty(t, b.Events())
	require.ErrorIs(t, b.Interfaces().Leave(0, ripGroup), udp.ErrNotMember)
	// not groups (RFC 1112 §4), and a group of another family
	for _, no := range []string{"10.0.0.9", "255.255.255.255", "ff02::9"} {
		require.ErrorIs(t, a.Interfaces().Join(0, addr(no)), stack.ErrNotGroup)
	}
	require.ErrorIs(t, a.Interfaces().Join(1, ripGroup), stack.ErrNotGroup)
	require.ErrorIs(t, a.Interfaces().Join(-1, ripGroup), stack.ErrNotGroup)
}

// RFC 3021 §2.2: a network of two addresses has no broadcast address.
func TestSlash31HasNoBroadcastAddress(t *testing.T) {
	w := newWorld(t)
	s := w.add(stack.Config{Interfaces: []stack.Interface{face("if0", "10.5.0.0/31")}})
	u := bindUDP(t, s, "0.0.0.0:7")
	sendTo(t, w, s, u, "10.5.0.1:7", "one host")
	require.ErrorIs(t, s.Datagrams().Send(w.now, u, netip.MustParseAddrPort("255.255.255.255:7"), nil),
		stack.ErrBroadcast)
	input(s, w.now, frame(packetTo(ip.V4(10, 5, 0, 1), ip.V4(10, 5, 0, 0))))
	assert.Len(t, s.Events(), 1, "both addresses of a /31 are host addresses")
}
