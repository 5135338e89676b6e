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
	if h.Protocol == ip.ProtoTCP {
		s.segment(now, i, h, b, payload)
		return
	}
	s.flushTrain(now)
	switch h.Protocol {
	case ip.ProtoTest:
		s.tell(Event{Test: &TestPacket{
			Src: netip.AddrFrom4(h.Src), Dst: netip.AddrFrom4(h.Dst),
			TTL: int(h.TTL), Data: append([]byte(nil), payload...),
		}})
	case ip.ProtoICMP:
		s.icmpInput(now, i, h, b, payload)
	case ip.ProtoUDP:
		s.datagram(now, i, h, b, payload)
	case ip.ProtoRIP:
		s.courseRIP(now, i, h, b, payload)
	default:
		s.dropOne(now, i, Inbound, ip.DropProtocol, b)
		s.reportError(now, icmp.TypeUnreachable, icmp.CodeProtocol, b)
	}
}

// segment verifies one TCP segment and adds it to the train that is being
// gathered, or delivers that and starts another.
func (s *Stack) segment(now clock.Time, i int, h *ip.Header, b, payload []byte) {
	sum := checksum.PseudoHeader(h.Src, h.Dst, ip.ProtoTCP, len(payload))
	if !s.in.checked && !checksum.Verify(payload, sum) {
		s.dropOne(now, i, Inbound, ip.DropTCPChecksum, b)
		return
	}
	src, dst, header, text, ok := tcp.ParseHeader(payload)
	if !ok {
		s.dropOne(now, i, Inbound, ip.DropTCPHeader, b)
		return
	}
	if !s.isPeer(i, h.Src) || !s.isPeer(i, h.Dst) {
		// RFC 9293 §3.9.2.3: neither from nor to a broadcast or multicast address.
		s.dropOne(now, i, Inbound, ip.DropMartian, b)
		return
	}
	tuple := tcp.Tuple{LocalAddr: h.Dst, RemoteAddr: h.Src, LocalPort: dst, RemotePort: src}
	ecn := tcp.ECN(h.TOS & 3)
	if s.in.gathered && ecn == s.in.train.ECN && s.in.joins(&tuple, &header, len(text)) {
		t := &s.in.train
		t.Flags |= header.Flags
		t.Len += len(text)
		t.Count++
		s.in.payload = append(s.in.payload, text)
		return
	}
	s.flushTrain(now)
	s.in.payload = s.in.payload[:0]
	if len(text) > 0 {
		s.in.payload = append(s.in.payload, text)
	}
	s.in.train = tcp.Segment{Tuple: tuple, Header: header, Len: len(text), Count: 1, ECN: ecn}
	s.in.iface, s.in.gathered = i, true
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
