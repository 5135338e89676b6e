package e2e_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

// target is the connection that the garbage attacks.
type target struct{ src, dst netip.AddrPort }

// garbage generates datagrams that no correct node sends, each kind in turn.
type garbage struct {
	rand *rand.Rand
	at   target
	from netip.Addr // source of the RIP messages
	to   netip.Addr // the router
	n    int
}

func (g *garbage) next() []byte {
	kinds := []func() []byte{
		func() []byte { return nil },
		func() []byte { return []byte{0x45, 0, 0, 5, 9} },
		g.noise, g.inconsistentHeader, g.wrongChecksum, g.wrongRIPCount, g.shortRIP, g.wrongRIP,
		g.wrongDataOffset, g.wrongTCPChecksum, g.wrongOptionLengths, g.blindReset, g.blindSYN, g.blindACK, g.shortTCP,
		g.ttlZero, g.unknownProtocol, g.fragment, g.icmp,
	}
	g.n++
	return kinds[g.n%len(kinds)]()
}

func (g *garbage) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.rand.Uint32())
	}
	return b
}

func (g *garbage) noise() []byte { return g.bytes(g.rand.IntN(1500)) }

// packet wraps a payload in an IP packet to the target.
func (g *garbage) packet(proto uint8, payload []byte) []byte {
	return peer.Packet{
		TTL: 16, Proto: proto, Src: g.at.src.Addr(), Dst: g.at.dst.Addr(), Payload: payload,
	}.Bytes()
}

// inconsistentHeader changes a field of the IP header, or truncates the packet. The checksum fits.
func (g *garbage) inconsistentHeader() []byte {
	b := g.packet(peer.ProtoTest, []byte("text"))
	switch g.rand.IntN(4) {
	case 0:
		b[0] = 0x65
	case 1:
		b[0] = 0x40 | byte(g.rand.IntN(16))
	case 2:
		binary.BigEndian.PutUint16(b[2:], uint16(g.rand.Uint32()))
	default:
		b = b[:20+g.rand.IntN(4)]
	}
	peer.Checksum(b)
	return b
}

func (g *garbage) wrongChecksum() []byte {
	b := g.packet(peer.ProtoTest, []byte("text"))
	b[10]++
	return b
}

func (g *garbage) rip(payload []byte) []byte {
	return peer.Packet{TTL: 1, Proto: peer.ProtoRIP, Src: g.from, Dst: g.to, Payload: payload}.Bytes()
}

// wrongRIPCount has an entry count that is larger than the number of entries.
func (g *garbage) wrongRIPCount() []byte {
	m := peer.RIP{Command: peer.RIPResponse, Width: 12, Entries: []peer.RIPEntry{
		{Cost: 0, Dst: netip.PrefixFrom(g.at.dst.Addr(), 32)},
	}}.Bytes()
	binary.BigEndian.PutUint16(m[2:], []uint16{5, 64, 65535, 2}[g.rand.IntN(4)])
	return g.rip(m)
}

func (g *garbage) shortRIP() []byte { return g.rip([]byte{0, 2, 0}[:g.rand.IntN(4)]) }

// wrongRIP has an unknown command, or a 12-byte entry with invalid values.
func (g *garbage) wrongRIP() []byte {
	b := append([]byte{0, byte(3 + g.rand.IntN(200)), 0, 1}, g.bytes(12)...)
	if g.rand.IntN(2) == 0 {
		// A mask with holes, and a cost beyond infinity.
		b = []byte{0, 2, 0, 1, 0xff, 0xff, 0xff, 0xff, 10, 0, 0, 0, 0xff, 0, 0xff, 0}
	}
	return g.rip(b)
}

// segment belongs to the connection; fields that an off-path attacker must guess are random.
func (g *garbage) segment(flags uint8) peer.Segment {
	return peer.Segment{
		SrcPort: g.at.src.Port(), DstPort: g.at.dst.Port(), Seq: g.rand.Uint32(), Ack: g.rand.Uint32(),
		Flags: flags, Window: uint16(g.rand.Uint32()),
	}
}

func (g *garbage) tcp(s peer.Segment) []byte { return s.Bytes(g.at.src.Addr(), g.at.dst.Addr()) }

func (g *garbage) wrongDataOffset() []byte {
	s := g.segment(peer.ACK)
	s.Payload = []byte("abcd")
	b := g.tcp(s)
	b[12] = byte(g.rand.IntN(16)) << 4
	if b[12] == 5<<4 {
		b[12] = 15 << 4
	}
	peer.ChecksumTCP(b, g.at.src.Addr(), g.at.dst.Addr())
	return g.packet(peer.ProtoTCP, b)
}

func (g *garbage) wrongTCPChecksum() []byte {
	s := g.segment(peer.ACK | peer.PSH)
	s.Payload = []byte("this must not arrive")
	b := g.tcp(s)
	b[16]++
	return g.packet(peer.ProtoTCP, b)
}

// wrongOptionLengths has an option with a wrong length or value, in a SYN.
func (g *garbage) wrongOptionLengths() []byte {
	s := g.segment(peer.SYN)
	s.Options = [][]byte{{2, 0, 0, 0}, {2, 40, 1, 1}, {5, 1, 1, 1}, {8, 10, 0, 0}, {3, 3, 255, 0}}[g.rand.IntN(5)]
	return g.packet(peer.ProtoTCP, g.tcp(s))
}

func (g *garbage) blindReset() []byte { return g.packet(peer.ProtoTCP, g.tcp(g.segment(peer.RST))) }
func (g *garbage) blindSYN() []byte   { return g.packet(peer.ProtoTCP, g.tcp(g.segment(peer.SYN))) }
func (g *garbage) blindACK() []byte   { return g.packet(peer.ProtoTCP, g.tcp(g.segment(peer.ACK))) }
func (g *garbage) shortTCP() []byte   { return g.packet(peer.ProtoTCP, g.bytes(g.rand.IntN(20))) }

func (g *garbage) ttlZero() []byte {
	return peer.Packet{
		TTL: byte(g.rand.IntN(2)), Proto: peer.ProtoTest, Src: g.at.src.Addr(), Dst: g.at.dst.Addr(),
		Payload: []byte("expired"),
	}.Bytes()
}

func (g *garbage) unknownProtocol() []byte { return g.packet(99, []byte("?")) }

// fragment is a fragment of a packet whose other fragments never arrive.
func (g *garbage) fragment() []byte {
	b := g.packet(peer.ProtoTCP, g.bytes(64))
	binary.BigEndian.PutUint16(b[6:], uint16(1<<13|g.rand.IntN(1<<13)))
	peer.Checksum(b)
	return b
}

// icmp returns a message that is too short, has a wrong checksum, or quotes an invalid packet.
func (g *garbage) icmp() []byte {
	b := append([]byte{byte(g.rand.IntN(20)), byte(g.rand.IntN(20)), 0, 0}, g.bytes(g.rand.IntN(60))...)
	if g.rand.IntN(2) == 0 && len(b)%2 == 0 {
		peer.ChecksumAt(b, 2)
	}
	return g.packet(1, b)
}

// connection waits for a node's connection to a port, and returns it.
func connection(t *testing.T, n *Node, to int) target {
	t.Helper()
	var at target
	n.Eventually(Soon, "connection", func() bool {
		for _, s := range n.Sockets() {
			if s.State == "ESTABLISHED" && int(s.Remote.Port()) == to {
				at = target{s.Local, s.Remote}
			}
		}
		return at.src.IsValid()
	})
	return at
}

// maxGarbage ends the test if the transfer never ends.
const maxGarbage = 2_000_000

// garbageTransfer is the size of a file whose transfer takes about as long as the garbage.
func garbageTransfer() int64 {
	if !testenv.Long() {
		return 2 * megabyte
	}
	return 60 * megabyte
}

// garbagePackets is the minimum number of packets that a sender of garbage sends.
func garbagePackets() int {
	if !testenv.Long() {
		return 4000
	}
	return 20_000
}

// While the router forwards a file transfer, a neighbor sends garbage from its own address and from
// the addresses of both ends of the transfer.
func TestGarbageFromNeighbor(t *testing.T) {
	t.Parallel()
	n := CopyNetwork(t, "nets", "a-b-c")
	at, from := testenv.FreePort(t), testenv.FreePort(t)
	n.Append("B", fmt.Sprintf("interface if2 10.9.0.1/24 127.0.0.1:%d", at),
		fmt.Sprintf("neighbor 10.9.0.2 at 127.0.0.1:%d via if2", from), "rip advertise-to 10.9.0.2")
	a, b, c := startLine(t, n)
	routes := b.Routes()
	wire := peer.Listen(t, from, at)
	before := b.Dropped()

	d := startTransfer(t, a, c, garbageTransfer(), 9000)
	g := &garbage{
		rand: rand.New(rand.NewPCG(1, 2)), at: connection(t, a, 9000),
		from: netip.MustParseAddr("10.9.0.2"), to: netip.MustParseAddr("10.9.0.1"),
	}
	back := target{src: g.at.dst, dst: g.at.src}
	for i := 0; i < garbagePackets() || !d.over() && i < maxGarbage; i++ {
		if i%200 == 0 {
			g.at, back = back, g.at
			b.Fence() // waits for the router, so that its socket buffer does not overflow
		}
		wire.Send(g.next())
	}
	d.done(patience)

	assert.Equal(t, routes, b.Routes(), "RIP learned nothing")
	drops := b.Dropped()
	for _, reason := range []string{
		"too short", "wrong version", "bad header length", "bad total length", "bad header checksum",
		"ttl exceeded", "bad rip message",
	} {
		assert.Greater(t, drops[reason], before[reason], "%s: %v", reason, drops)
	}
	ends := a.Dropped()
	for reason, count := range c.Dropped() {
		ends[reason] += count
	}
	for _, reason := range []string{"bad tcp checksum", "bad tcp header", "unknown protocol", "overlapping fragments"} {
		assert.NotZero(t, ends[reason], "%s: %v", reason, ends)
	}
	reach(t, a, c)
}

// The same garbage from an unknown UDP address has no effect, whatever source it claims.
func TestGarbageFromUnknownAddress(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"a-b-c", "old/a-b-c"} {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			a, b, c := line(t, "nets", folder)
			routes := b.Routes()
			d := startTransfer(t, a, c, garbageTransfer(), 9000)
			g := &garbage{
				rand: rand.New(rand.NewPCG(3, 4)), at: connection(t, a, 9000), from: a.Addr(), to: b.Addr(),
			}
			wires := map[*Node]*peer.Wire{}
			for _, n := range []*Node{a, b, c} {
				wires[n] = peer.Listen(t, testenv.FreePort(t), udpPort(t, n.Interfaces()[0]))
			}
			for i := 0; i < garbagePackets() || !d.over() && i < maxGarbage; i++ {
				for n, wire := range wires {
					if i%500 == 0 {
						n.Fence()
					}
					wire.Send(g.next())
				}
			}
			t.Log("# valid packets, if a neighbor had sent them")
			for _, wire := range wires {
				wire.SendRIP(a.Addr(), b.Addr(), peer.RIP{
					Command: peer.RIPResponse, Width: 12,
					Entries: []peer.RIPEntry{{Cost: 1, Dst: netip.MustParsePrefix("77.0.0.0/8")}},
				})
			}
			d.done(patience)
			assert.Equal(t, routes, b.Routes(), "RIP learned nothing")
			reach(t, a, c)
		})
	}
}

func udpPort(t *testing.T, i control.Interface) uint16 {
	t.Helper()
	_, port, err := net.SplitHostPort(i.UDP)
	require.NoError(t, err)
	n, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	return uint16(n)
}
