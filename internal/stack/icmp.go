package stack

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// Echo is the answer to an echo request: the reply, or an error about it.
type Echo struct {
	From     netip.Addr
	ID, Seq  uint16
	TTL      int
	Bytes    int   // of ICMP message
	Type     uint8 // icmp.TypeEchoReply, or the error's type
	Code     uint8
	Received clock.Time
}

// icmpInput takes an ICMP message for this node.
func (s *Stack) icmpInput(now clock.Time, i int, h *ip.Header, b, payload []byte) {
	m, ok := icmp.Parse(payload)
	if !ok {
		s.dropOne(now, i, Inbound, ip.DropICMP, b)
		return
	}
	switch m.Type {
	case icmp.TypeEcho:
		if _, unicast := s.own[h.Dst]; !unicast {
			return // RFC 1122 §3.2.2.6: an echo to a broadcast may be ignored
		}
		m.Type = icmp.TypeEchoReply
		// RFC 1122 §3.2.2.6: the reply's source is the request's destination.
		_ = s.send(now, ip.Header{
			Protocol: ip.ProtoICMP, TTL: defaultTTL, Src: h.Dst, Dst: h.Src,
		}, m.Append(nil)) // a reply that finds no way is a reply that was lost
	case icmp.TypeEchoReply:
		id, seq := m.Echo()
		s.tell(Event{Echo: &Echo{
			From: netip.AddrFrom4(h.Src), TTL: int(h.TTL), Bytes: len(payload),
			ID: id, Seq: seq, Received: now,
		}})
	case icmp.TypeUnreachable, icmp.TypeTimeExceeded:
		s.icmpError(now, h, &m)
	}
}

// icmpError gives an error to whom it concerns: the sender of the datagram
// that it quotes.
func (s *Stack) icmpError(now clock.Time, h *ip.Header, m *icmp.Message) {
	quoted, rest, ok := icmp.Quoted(m.Body)
	if !ok {
		return
	}
	switch quoted.Protocol {
	case ip.ProtoTCP:
		if m.Type == icmp.TypeUnreachable && m.Code == icmp.CodeFragNeeded {
			mtu := m.MTU()
			if mtu == 0 {
				mtu = tcp.Plateau(quoted.TotalLen) // a router from before RFC 1191
			}
			s.tcp.TooBig(now, quotedTuple(quoted, rest), binary.BigEndian.Uint32(rest[4:]), mtu)
			return
		}
		err := errUnreachable
		if m.Type == icmp.TypeTimeExceeded {
			err = errTimeExceeded
		}
		s.tcp.Unreachable(now, quotedTuple(quoted, rest), binary.BigEndian.Uint32(rest[4:]), err)
	case ip.ProtoUDP:
		s.udpError(quoted, rest, m)
	case ip.ProtoICMP:
		if rest[0] == icmp.TypeEcho {
			s.tell(Event{Echo: &Echo{
				From: netip.AddrFrom4(h.Src), TTL: int(h.TTL), Bytes: len(m.Body) + 8,
				ID: binary.BigEndian.Uint16(rest[4:]), Seq: binary.BigEndian.Uint16(rest[6:]),
				Type: m.Type, Code: m.Code, Received: now,
			}})
		}
	}
}

// quotedTuple names the connection of ours whose segment an error quotes.
func quotedTuple(q icmp.Quote, rest []byte) tcp.Tuple {
	return tcp.Tuple{
		LocalAddr: q.Src, RemoteAddr: q.Dst,
		LocalPort: binary.BigEndian.Uint16(rest), RemotePort: binary.BigEndian.Uint16(rest[2:]),
	}
}

// Errors that ICMP reports about a connection's segments.
var (
	errUnreachable  = errors.New("destination unreachable")
	errTimeExceeded = errors.New("time to live exceeded")
)

// reportError tells the sender of original why it was dropped.
func (s *Stack) reportError(now clock.Time, typ, code uint8, original []byte) {
	s.report(now, typ, code, [4]byte{}, original)
}

// reportTooBig reports fragmentation needed with the next hop's MTU (RFC 1191 §4).
func (s *Stack) reportTooBig(now clock.Time, mtu int, original []byte) {
	s.report(now, icmp.TypeUnreachable, icmp.CodeFragNeeded, icmp.MTURest(mtu), original)
}

func (s *Stack) report(now clock.Time, typ, code uint8, rest [4]byte, original []byte) {
	if !icmp.MayReport(original) {
		return
	}
	// The source is the address of the interface that leads back (RFC 1812 §4.3.2.4).
	dst := ip.Addr(original[12:16])
	// A report that cannot be sent is lost, like any other datagram.
	_ = s.send(now, ip.Header{Protocol: ip.ProtoICMP, TTL: defaultTTL, Dst: dst},
		icmp.Error(nil, typ, code, rest, original))
}

// SendEcho sends an echo request with size bytes of data and the given TTL (0
// means 64).
func (s *Stack) SendEcho(now clock.Time, dst netip.Addr, id, seq uint16, size, ttl int) error {
	m := icmp.Message{Type: icmp.TypeEcho, Rest: icmp.EchoRest(id, seq), Body: make([]byte, size)}
	for i := range m.Body {
		m.Body[i] = byte(i)
	}
	if ttl == 0 {
		ttl = defaultTTL
	}
	h := ip.Header{Protocol: ip.ProtoICMP, TTL: uint8(ttl), Dst: dst.As4()}
	return s.send(now, h, m.Append(nil))
}
