package link

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// openShared opens one socket for interfaces 0, 1, …, whose addresses are 10.0.i.self.
func openShared(tb testing.TB, mode Offload, links int, self byte) *UDP {
	tb.Helper()
	cfg := Config{Offload: mode}
	for i := range links {
		cfg.Interfaces = append(cfg.Interfaces, Interface{
			Name: "if", ID: i, Local: netip.AddrFrom4([4]byte{10, 0, byte(i), self}),
		})
	}
	return open(tb, cfg)
}

// packet returns an IPv4 packet with the fields that a link reads.
func packet(size int, src, dst [4]byte, tag byte) []byte {
	p := make([]byte, size)
	p[0] = 0x45
	copy(p[sourceAt:], src[:])
	copy(p[destinationAt:], dst[:])
	p[size-1] = tag
	return p
}

func trainOf(iface int, hop [4]byte, packets ...[]byte) buffer.Train {
	t := buffer.Train{Pieces: packets, Size: len(packets[0]), Count: len(packets), Iface: iface, NextHop: netip.AddrFrom4(hop)}
	for _, p := range packets {
		t.Bytes += len(p)
	}
	return t
}

// TestSharedSocket checks a node with the old syntax and links to several peers. The UDP source
// address identifies the link.
func TestSharedSocket(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		hub := openShared(t, mode, 3, 1)
		var peers []*UDP
		for i := range 3 {
			p := openShared(t, mode, 1, 2)
			addNeighbor(hub, i, [4]byte{10, 0, byte(i), 2}, p.Info().Local)
			addNeighbor(p, 0, [4]byte{10, 0, byte(i), 1}, hub.Info().Local)
			peers = append(peers, p)
		}
		r := rand.New(rand.NewPCG(12, 1))
		for i, p := range peers {
			there := train(r, 0, [4]byte{10, 0, byte(i), 1}, 300, 300, 20)
			write(t, p, there)
			assert.Equal(t, wrap(i, packetsOf(there)), receive(t, hub, 3))
			back := train(r, i, [4]byte{10, 0, byte(i), 2}, 300)
			write(t, hub, back)
			assert.Equal(t, wrap(0, packetsOf(back)), receive(t, p, 1))
		}
		t.Log("# an unknown sender is counted for the socket, not for an interface")
		lone, _ := foreignSocket(t)
		_, err := lone.WriteToUDPAddrPort([]byte("hello"), hub.Info().Local)
		require.NoError(t, err)
		eventually(t, func() bool {
			_, _ = hub.ReadBatch(make([]buffer.Frame, 4))
			return hub.Socket().Unknown == 1
		}, "it is counted")
	})
}

// TestTwoLinksToOnePeer checks that the packets themselves identify the link, also within one
// datagram train.
func TestTwoLinksToOnePeer(t *testing.T) {
	eachMode(t, func(t *testing.T, mode Offload) {
		a, b := openShared(t, mode, 2, 1), openShared(t, mode, 2, 2)
		for i := range 2 {
			addNeighbor(a, i, [4]byte{10, 0, byte(i), 2}, b.Info().Local)
			addNeighbor(b, i, [4]byte{10, 0, byte(i), 1}, a.Info().Local)
		}
		far := [4]byte{10, 9, 9, 9}
		local := func(link, node byte) [4]byte { return [4]byte{10, 0, link, node} }
		packets := [][]byte{
			packet(60, local(0, 1), far, 0),         // source: the peer's end of link 0
			packet(60, local(1, 1), far, 1),         // source: the peer's end of link 1
			packet(60, local(1, 1), local(0, 2), 2), // the source has precedence
			packet(60, far, local(1, 2), 3),         // destination: this node's end of link 1
			packet(60, far, local(0, 2), 4),
			packet(60, far, local(0, 2), 5),
			packet(60, far, far, 6), // a forwarded packet: the first link
			make([]byte, 5),         // this is not a packet
		}
		want := []int{0, 1, 1, 1, 0, 0, 0, 0}
		write(t, a, trainOf(0, local(0, 2), packets...))
		var exp []received
		for i, p := range packets {
			exp = append(exp, received{want[i], p})
		}
		assert.Equal(t, exp, receive(t, b, len(packets)))

		t.Log("# forwarded packets are received on a link that is up")
		b.SetUp(0, false)
		write(t, a, trainOf(1, local(1, 2), packets[6]))
		assert.Equal(t, []received{{1, packets[6]}}, receive(t, b, 1))
	})
}

// FuzzDeliver checks how arbitrary bytes from a peer with two links are split into frames: each
// byte is delivered once, in order, and each packet with its link's number.
func FuzzDeliver(f *testing.F) {
	near, far := [4]byte{10, 0, 1, 1}, [4]byte{10, 9, 9, 9}
	two := append(packet(20, near, far, 1), packet(20, far, [4]byte{10, 0, 1, 2}, 2)...)
	f.Add(two, 20)
	f.Add(append(packet(40, far, far, 1), two...), 40)
	f.Add([]byte{1}, 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		if len(data) > 0 && (size <= 0 || size > len(data)) || len(data) == 0 && size != 0 {
			return // no socket reports such a size
		}
		d := newUDP(Config{Interfaces: []Interface{
			{ID: 0, Local: netip.AddrFrom4([4]byte{10, 0, 0, 2})}, {ID: 1, Local: netip.AddrFrom4([4]byte{10, 0, 1, 2})},
		}}.withDefaults(), &limitedSocket{}, -1)
		for i := range 2 {
			addNeighbor(d, i, [4]byte{10, 0, byte(i), 1}, fromA)
		}
		d.lent = []datagram{{data, size, addressOf(fromA), false}}
		frames := make([]buffer.Frame, 1)
		var got []byte
		for len(d.lent) > 0 {
			n, err := d.ReadBatch(frames)
			require.NoError(t, err)
			for _, fr := range frames[:n] {
				got = append(got, fr.Data...)
				for _, p := range cut(fr) {
					s := d.table.senders(addressOf(fromA))
					require.Equal(t, fr.Iface, linkOf(s, p).on.ID)
				}
			}
		}
		require.Len(t, got, len(data))
		require.True(t, bytes.Equal(data, got))
	})
}

func TestAddresses(t *testing.T) {
	ap := netip.MustParseAddrPort("192.168.7.9:65535")
	assert.Equal(t, ap, addressOf(ap).addrPort())
	assert.Equal(t, addressOf(ap), addressOf(netip.MustParseAddrPort("[::ffff:192.168.7.9]:65535")))
	ap = netip.MustParseAddrPort("[2001:db8::7:9]:5")
	assert.Equal(t, ap, addressOf(ap).addrPort())
	assert.Zero(t, addressOf(netip.AddrPort{}))
	assert.Zero(t, addressOf(netip.MustParseAddrPort("127.0.0.1:0")))
	assert.False(t, address{}.addrPort().IsValid())
}
