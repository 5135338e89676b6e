package peer

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The IP protocols of the peers.
const (
	ProtoTest = 0
	ProtoTCP  = 6
	ProtoRIP  = 200
)

// TCP flags.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
)

// Packet is an IPv4 packet without options.
type Packet struct {
	TTL, Proto uint8
	Src, Dst   netip.Addr
	Payload    []byte
}

const ipSize = 20

// Bytes encodes the packet.
func (p Packet) Bytes() []byte {
	b := make([]byte, ipSize, ipSize+len(p.Payload))
	b[0] = 4<<4 | ipSize/4
	binary.BigEndian.PutUint16(b[2:], uint16(ipSize+len(p.Payload)))
	b[8], b[9] = p.TTL, p.Proto
	copy(b[12:], p.Src.AsSlice())
	copy(b[16:], p.Dst.AsSlice())
	binary.BigEndian.PutUint16(b[10:], ^sum(0, b))
	return append(b, p.Payload...)
}

// WithOptions returns the packet with header options, whose length must be a multiple of 4 bytes.
func WithOptions(p Packet, options []byte) []byte {
	b := p.Bytes()
	b = append(append(b[:ipSize:ipSize], options...), p.Payload...)
	b[0] = 4<<4 | uint8((ipSize+len(options))/4)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	Checksum(b)
	return b
}

// ParsePacket parses a packet. It rejects lengths that exceed the datagram.
func ParsePacket(b []byte) (Packet, bool) {
	if len(b) < ipSize || b[0]>>4 != 4 || sum(0, b[:ipSize]) != 0xffff {
		return Packet{}, false
	}
	size, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if size < ipSize || total < size || total > len(b) {
		return Packet{}, false
	}
	return Packet{
		TTL: b[8], Proto: b[9],
		Src: netip.AddrFrom4([4]byte(b[12:])), Dst: netip.AddrFrom4([4]byte(b[16:])),
		Payload: b[size:total],
	}, true
}

// Checksum sets the checksum of an IP header, if the packet is long enough.
func Checksum(packet []byte) {
	if size := int(packet[0]&15) * 4; size >= ipSize && size <= len(packet) {
		packet[10], packet[11] = 0, 0
		binary.BigEndian.PutUint16(packet[10:], ^sum(0, packet[:size]))
	}
}

// ChecksumAt sets the checksum of a whole message at an even offset.
func ChecksumAt(message []byte, at int) {
	message[at], message[at+1] = 0, 0
	binary.BigEndian.PutUint16(message[at:], ^sum(0, message))
}

// ChecksumTCP sets the checksum of a segment.
func ChecksumTCP(segment []byte, src, dst netip.Addr) {
	segment[16], segment[17] = 0, 0
	binary.BigEndian.PutUint16(segment[16:], ^sum(pseudo(src, dst, len(segment)), segment))
}

// sum computes the one's-complement sum of RFC 1071.
func sum(start uint32, b []byte) uint16 {
	s := start
	for ; len(b) >= 2; b = b[2:] {
		s += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		s += uint32(b[0]) << 8
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// Segment is a TCP segment.
type Segment struct {
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Flags            uint8
	Window           uint16
	Options, Payload []byte
}

const tcpSize = 20

// Bytes encodes the segment with its checksum in a packet from src to dst.
func (s Segment) Bytes(src, dst netip.Addr) []byte {
	b := make([]byte, tcpSize, tcpSize+len(s.Options)+len(s.Payload))
	binary.BigEndian.PutUint16(b[0:], s.SrcPort)
	binary.BigEndian.PutUint16(b[2:], s.DstPort)
	binary.BigEndian.PutUint32(b[4:], s.Seq)
	binary.BigEndian.PutUint32(b[8:], s.Ack)
	b[12], b[13] = uint8((tcpSize+len(s.Options))/4)<<4, s.Flags
	binary.BigEndian.PutUint16(b[14:], s.Window)
	b = append(append(b, s.Options...), s.Payload...)
	binary.BigEndian.PutUint16(b[16:], ^sum(pseudo(src, dst, len(b)), b))
	return b
}

// ParseSegment parses a packet's segment and verifies its checksum.
func ParseSegment(p Packet) (Segment, bool) {
	b := p.Payload
	if p.Proto != ProtoTCP || len(b) < tcpSize || sum(pseudo(p.Src, p.Dst, len(b)), b) != 0xffff {
		return Segment{}, false
	}
	size := int(b[12]>>4) * 4
	if size < tcpSize || size > len(b) {
		return Segment{}, false
	}
	return Segment{
		SrcPort: binary.BigEndian.Uint16(b[0:]), DstPort: binary.BigEndian.Uint16(b[2:]),
		Seq: binary.BigEndian.Uint32(b[4:]), Ack: binary.BigEndian.Uint32(b[8:]),
		Flags: b[13], Window: binary.BigEndian.Uint16(b[14:]),
		Options: b[tcpSize:size], Payload: b[size:],
	}, true
}

func pseudo(src, dst netip.Addr, length int) uint32 {
	a, b := src.AsSlice(), dst.AsSlice()
	return uint32(sum(sum32(a), b)) + ProtoTCP + uint32(length)
}

func sum32(b []byte) uint32 { return uint32(sum(0, b)) }

// Wire is the UDP socket at one end of a link.
type Wire struct {
	t    *testing.T
	conn *net.UDPConn
	to   *net.UDPAddr
	buf  []byte
}

// Port returns the UDP port of the wire.
func (w *Wire) Port() uint16 { return w.conn.LocalAddr().(*net.UDPAddr).AddrPort().Port() }

// Listen opens one end of a link: a UDP socket at a port of the loopback address (0: any port). It
// sends to the port other.
func Listen(t *testing.T, port, other uint16) *Wire {
	t.Helper()
	loopback := net.IPv4(127, 0, 0, 1)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: loopback, Port: int(port)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadBuffer(1 << 20) // a smaller buffer works, too
	to := &net.UDPAddr{IP: loopback, Port: int(other)}
	return &Wire{t: t, conn: conn, to: to, buf: make([]byte, 65536)}
}

// Send sends a datagram unchanged. It ignores errors: the node may not run yet.
func (w *Wire) Send(datagram []byte) {
	_, _ = w.conn.WriteToUDP(datagram, w.to)
}

// SendPacket sends a packet.
func (w *Wire) SendPacket(p Packet) { w.Send(p.Bytes()) }

// Receive waits for a datagram with a valid packet. The packet is valid until the next call.
func (w *Wire) Receive(until time.Time) (Packet, bool) {
	w.t.Helper()
	require.NoError(w.t, w.conn.SetReadDeadline(until))
	for {
		n, _, err := w.conn.ReadFromUDP(w.buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return Packet{}, false
		case err != nil:
			continue // the other end's port was closed for a moment
		}
		if p, ok := ParsePacket(w.buf[:n]); ok {
			return p, true
		}
		w.t.Errorf("the node sent an invalid IPv4 packet: %x", w.buf[:n])
	}
}
