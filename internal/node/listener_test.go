package node

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// segments is the other end of a node's link. Tests read and write segments at this end.
type segments struct {
	testing.TB
	clock *Clock
	node  *Node
	link  *link.End
	buf   [2048]byte
}

// newSegments starts a node with 10.0.0.1 and 2001:db8::1, a clock, and a link that the test
// drives.
func newSegments(tb testing.TB) *segments {
	tb.Helper()
	s := &segments{TB: tb, clock: new(Clock)}
	near, far := link.Pipe(0)
	s.link = far
	s.node = start(tb, Config{Clock: s.clock, Devices: map[string]link.Device{"if0": near}}, "A",
		"interface if0 10.0.0.1/24 127.0.0.1:1\nneighbor 10.0.0.2 at 127.0.0.1:2 via if0\n"+
			"route 0.0.0.0/0 via 10.0.0.2\naddress if0 2001:db8::1/64\n"+
			"neighbor 2001:db8::2 at 127.0.0.1:2 via if0\nroute ::/0 via 2001:db8::2\n")
	return s
}

// client returns a different client address and port for each i. For every second i it is an IPv6
// address.
func client(i int) netip.AddrPort {
	from := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	if i%2 == 1 {
		from = netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 0, 1, 14: byte(i >> 8), 15: byte(i)})
	}
	return netip.AddrPortFrom(from, uint16(1024+i>>16))
}

// send sends an empty segment to a port of the node.
func (s *segments) send(from netip.AddrPort, port uint16, flags tcp.Flags, seq, ack uint32) {
	s.Helper()
	h := tcp.Header{Seq: seq, Ack: ack, Flags: flags, Window: 0xffff}
	segment := make([]byte, h.Size())
	h.Put(segment, from.Port(), port)
	to := netip.AddrFrom4([4]byte{10, 0, 0, 1})
	if from.Addr().Is6() {
		to = netip.MustParseAddr("2001:db8::1")
	}
	sum := checksum.PseudoHeader(from.Addr(), to, ip.ProtoTCP, len(segment))
	binary.BigEndian.PutUint16(segment[16:], ^checksum.Fold(checksum.Sum(segment, sum)))
	header := ip.Header{TTL: 64, Protocol: ip.ProtoTCP, Src: from.Addr(), Dst: to}
	header.TotalLen = header.Size() + len(segment)
	_, err := s.link.Write(append(header.Append(nil), segment...))
	require.NoError(s, err)
}

// answers calls f with every segment that the node has sent since the last call.
func (s *segments) answers(f func(to netip.AddrPort, h tcp.Header)) {
	s.Helper()
	for {
		n, ok := s.link.TryRead(s.buf[:])
		if !ok {
			return
		}
		packet, payload, drop := ip.ParseHeader(s.buf[:n])
		require.Zero(s, drop)
		_, port, h, _, ok := tcp.ParseHeader(payload)
		require.True(s, ok)
		f(netip.AddrPortFrom(packet.Dst, port), h)
	}
}

// heard returns the client and header of each answer with exactly these flags.
func (s *segments) heard(flags tcp.Flags) map[netip.AddrPort]tcp.Header {
	s.Helper()
	got := map[netip.AddrPort]tcp.Header{}
	s.answers(func(to netip.AddrPort, h tcp.Header) {
		if h.Flags == flags {
			got[to] = h
		}
	})
	return got
}

// The backlog limits the connections that wait for Accept. It applies to the node and its TCP
// together, and to both families together. When it is reached, the ACK of a handshake is dropped,
// and the SYN-ACK is retransmitted until there is room.
func TestBacklogLimitsWaitingConnections(t *testing.T) {
	const backlog, clients = 11, 30
	s := newSegments(t)
	l, err := s.node.TCP.Listen(netip.MustParseAddrPort("[::]:80"), backlog)
	require.NoError(t, err)
	for i := range clients {
		s.send(client(i), 80, tcp.SYN, 0, 0)
	}
	answered := s.heard(tcp.SYN | tcp.ACK)
	require.Len(t, answered, clients)
	handshake := func() {
		for i := range clients {
			s.send(client(i), 80, tcp.ACK, 1, answered[client(i)].Seq+1)
		}
	}
	established := func() (n int) {
		require.NoError(t, s.node.Call(func(s *stack.Stack, _ clock.Time) error {
			for c := range s.TCP().Conns() {
				if c.State() == tcp.StateEstablished {
					n++
				}
			}
			return nil
		}))
		return n
	}
	handshake()
	assert.Equal(t, backlog, established())
	socket, err := l.Socket()
	require.NoError(t, err)
	assert.Equal(t, backlog, socket.RecvQ, "connections that wait, in the operator's list")
	assert.Equal(t, backlog, socket.SendQ)
	s.send(client(clients), 80, tcp.SYN, 0, 0)
	assert.Empty(t, s.heard(tcp.SYN|tcp.ACK), "a full queue answers no SYN")

	s.clock.Advance(time.Second)
	assert.Len(t, s.heard(tcp.SYN|tcp.ACK), clients-backlog)
	for range 4 {
		_, err := l.AcceptTCP()
		require.NoError(t, err)
	}
	handshake()
	assert.Equal(t, backlog+4, established())
	require.NoError(t, l.Close())
	reset := s.heard(tcp.RST | tcp.ACK)
	assert.Len(t, reset, clients-4, "waiting and half-open connections")
}
