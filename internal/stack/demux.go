package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// deliver hands a packet for this node to its protocol.
func (s *Stack) deliver(now clock.Time, i int, h *ip.Header, b, payload []byte) {
	if h.IsFragment() {
		s.reassemble(now, i, h, b)
		return
	}
	s.hear(now, h, payload)
	raw := s.hearRaw(h, payload)
	if raw && !known(h.Protocol) {
		s.interfaces[i].rx.delivered++
		return
	}
	if reason := s.accept(now, i, h, b, payload); reason != ip.DropNone {
		s.dropOne(now, i, Inbound, reason, b)
		return
	}
	s.interfaces[i].rx.delivered++
}

// known reports whether the stack itself does something with a protocol.
func known(protocol uint8) bool {
	switch protocol {
	case ip.ProtoTCP, ip.ProtoTest, ip.ProtoICMP, ip.ProtoUDP, ip.ProtoRIP:
		return true
	}
	return false
}

// accept is deliver's choice of the protocol. It returns why the packet ends here
// instead of there; whoever is to be told has been.
func (s *Stack) accept(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	if h.Protocol == ip.ProtoTCP {
		return s.segment(now, i, h, payload)
	}
	s.flushTrain(now)
	switch h.Protocol {
	case ip.ProtoTest:
		s.tell(Event{Test: &TestPacket{
			Src: netip.AddrFrom4(h.Src), Dst: netip.AddrFrom4(h.Dst),
			TTL: int(h.TTL), Data: append([]byte(nil), payload...),
		}})
	case ip.ProtoICMP:
		return s.icmpInput(now, i, h, b, payload)
	case ip.ProtoUDP:
		return s.datagram(now, i, h, b, payload)
	case ip.ProtoRIP:
		return s.courseRIP(now, i, h, payload)
	default:
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeProtocol, b)
		return ip.DropProtocol
	}
	return ip.DropNone
}

// segment verifies one TCP segment and adds it to the train that is being
// gathered, or delivers that and starts another.
func (s *Stack) segment(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	sum := checksum.PseudoHeader(h.Src, h.Dst, ip.ProtoTCP, len(payload))
	if !s.in.checked && !checksum.Verify(payload, sum) {
		return ip.DropTCPChecksum
	}
	src, dst, header, text, ok := tcp.ParseHeader(payload)
	if !ok {
		return ip.DropTCPHeader
	}
	if !s.in.met && (!s.isPeer(i, h.Src) || !s.isPeer(i, h.Dst)) {
		// RFC 9293 §3.9.2.3: neither from nor to a broadcast or multicast address.
		return ip.DropMartian
	}
	tuple := tcp.Tuple{LocalAddr: h.Dst, RemoteAddr: h.Src, LocalPort: dst, RemotePort: src}
	ecn := tcp.ECN(h.TOS & 3)
	if s.in.gathered && ecn == s.in.train.ECN && s.in.joins(&tuple, &header, len(text)) {
		t := &s.in.train
		t.Flags |= header.Flags
		t.Len += len(text)
		t.Count++
		s.in.payload = append(s.in.payload, text)
		return ip.DropNone
	}
	s.flushTrain(now)
	s.in.payload = s.in.payload[:0]
	if len(text) > 0 {
		s.in.payload = append(s.in.payload, text)
	}
	s.in.train = tcp.Segment{
		Tuple: tuple, Header: header, Len: len(text), Count: 1, ECN: ecn,
		Foreign: s.foreign(i, h.Dst),
	}
	s.in.iface, s.in.gathered = i, true
	return ip.DropNone
}

// joins reports whether a segment continues the gathered train: the next bytes
// of the same flow, saying nothing else that the train does not say. Only the
// last segment of a train may carry PSH.
func (in *inbound) joins(tuple *tcp.Tuple, h *tcp.Header, n int) bool {
	t := &in.train
	const plain = tcp.ACK
	return n > 0 && t.Len > 0 && t.Tuple == *tuple &&
		h.Seq == t.Seq+uint32(t.Len) && h.Ack == t.Ack && h.Window == t.Window &&
		t.Flags == plain && h.Flags&^tcp.PSH == plain &&
		h.Options == t.Options && t.Options.SACKCount == 0
}

// flushTrain gives the gathered train to TCP.
func (s *Stack) flushTrain(now clock.Time) {
	if !s.in.gathered {
		return
	}
	s.in.gathered = false
	s.in.train.Payload = s.in.payload
	s.tcp.Input(now, &s.in.train)
}
