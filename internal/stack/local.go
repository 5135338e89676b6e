package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// local delivers packets for this node to its protocols, and joins TCP segments to trains.
type local struct {
	ifs     *Interfaces
	routing *Routing
	icmp    *icmpHost
	rip     *RIP
	probers *Probers
	raws    *Raws
	ports   *Ports
	events  *events
	tcp     *tcp.Host
	udp     *udp.Host
	in      *incoming

	fragments *ip.Reassembler
	catching  catching
	train     tcp.Segment // being gathered
	gathered  bool
	payload   [][]byte // the train's pieces, reused
}

// deliver passes a packet for this node to its protocol.
func (l *local) deliver(now clock.Time, i int, h *ip.Header, b, payload []byte) {
	if h.IsFragment() {
		l.reassemble(now, i, h, b)
		return
	}
	l.probers.hear(now, h, payload)
	raw := l.raws.hear(h, payload)
	if raw && !known(h.Protocol) {
		l.ifs.list[i].rx.delivered++
		return
	}
	if reason := l.accept(now, i, h, b, payload); reason != ip.DropNone {
		l.ifs.dropOne(now, i, Inbound, reason, b)
		return
	}
	l.ifs.list[i].rx.delivered++
}

// accept chooses the protocol for deliver. It returns the reason if the packet is dropped; it has
// sent the ICMP error then.
func (l *local) accept(now clock.Time, i int, h *ip.Header, b, payload []byte) ip.DropReason {
	if h.Protocol == ip.ProtoTCP {
		return l.segment(now, i, h, payload)
	}
	l.flushTrain(now)
	switch h.Protocol {
	case ip.ProtoTest:
		l.events.tell(Event{Test: &TestPacket{
			Src: netip.AddrFrom4(h.Src), Dst: netip.AddrFrom4(h.Dst),
			TTL: int(h.TTL), Data: append([]byte(nil), payload...),
		}})
	case ip.ProtoICMP:
		return l.icmp.input(now, i, h, b, payload)
	case ip.ProtoUDP:
		return l.datagram(now, i, h, b, payload)
	case ip.ProtoRIP:
		return l.rip.inputCourse(now, i, h, payload)
	default:
		l.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodeProtocol, b)
		return ip.DropProtocol
	}
	return ip.DropNone
}

// segment verifies one TCP segment. It appends the segment to the current train, or delivers that
// train and starts another.
func (l *local) segment(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	sum := checksum.PseudoHeader(h.Src, h.Dst, ip.ProtoTCP, len(payload))
	if !l.in.checked && !checksum.Verify(payload, sum) {
		return ip.DropTCPChecksum
	}
	src, dst, header, text, ok := tcp.ParseHeader(payload)
	if !ok {
		return ip.DropTCPHeader
	}
	if !l.in.met && (!l.ifs.isPeer(i, h.Src) || !l.ifs.isPeer(i, h.Dst)) {
		// RFC 9293 §3.9.2.3: neither end may be a broadcast or multicast address.
		return ip.DropMartian
	}
	tuple := tcp.Tuple{LocalAddr: h.Dst, RemoteAddr: h.Src, LocalPort: dst, RemotePort: src}
	ecn := tcp.ECN(h.TOS & 3)
	if l.gathered && ecn == l.train.ECN && l.joins(&tuple, &header, len(text)) {
		t := &l.train
		t.Flags |= header.Flags
		t.Len += len(text)
		t.Count++
		l.payload = append(l.payload, text)
		return ip.DropNone
	}
	l.flushTrain(now)
	l.payload = l.payload[:0]
	if len(text) > 0 {
		l.payload = append(l.payload, text)
	}
	l.train = tcp.Segment{
		Tuple: tuple, Header: header, Len: len(text), Count: 1, ECN: ecn,
		Foreign: l.foreign(i, h.Dst),
	}
	l.gathered = true
	return ip.DropNone
}

// flushTrain delivers the current train to TCP.
func (l *local) flushTrain(now clock.Time) {
	if !l.gathered {
		return
	}
	l.gathered = false
	l.train.Payload = l.payload
	l.tcp.Input(now, &l.train)
}

// known reports whether the stack implements a protocol.
func known(protocol uint8) bool {
	switch protocol {
	case ip.ProtoTCP, ip.ProtoTest, ip.ProtoICMP, ip.ProtoUDP, ip.ProtoRIP:
		return true
	}
	return false
}

// joins reports whether a segment continues the current train: the next bytes of the same flow,
// with the same header fields otherwise. Only the last segment of a train may have PSH.
func (l *local) joins(tuple *tcp.Tuple, h *tcp.Header, n int) bool {
	t := &l.train
	const plain = tcp.ACK
	return n > 0 && t.Len > 0 && t.Tuple == *tuple &&
		h.Seq == t.Seq+uint32(t.Len) && h.Ack == t.Ack && h.Window == t.Window &&
		t.Flags == plain && h.Flags&^tcp.PSH == plain &&
		h.Options == t.Options && t.Options.SACKCount == 0
}
