package stack

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// incoming is the state of the packets that are being received.
type incoming struct {
	checked bool // the caller knows that the transport checksums are correct
	self    bool // the packets come from this node
	known   bool // the packets' flow is in the cache
}

// Input receives packets of one interface. checked says that their transport checksums are correct.
// Input borrows the packets until Output is drained, and modifies those that it forwards. A packet
// is dropped if its outgoing link has no room when Output is drained. passed reports that all
// packets were forwarded by cached decisions, and that Output has nothing else to send. In that
// case no deadline has changed, and no waiting program needs to be woken.
func (s *Stack) Input(now clock.Time, iface int, checked bool, packets [][]byte) (passed bool) {
	s.out.memory.reuse()
	s.in.checked, passed = checked, len(s.fwd.queue) == 0
	for _, b := range packets {
		if f, done := s.fwd.forwardCached(now, iface, b); !done {
			s.receive(now, iface, f, b)
			passed = false
		}
	}
	s.in.checked = false
	s.local.flushTrain(now)
	return passed && !s.unsent() && !s.engines()
}

// receive is the IP layer's processing of one packet of flow f.
func (s *Stack) receive(now clock.Time, i int, f *flow, b []byte) {
	in := &s.ifs.list[i]
	in.rx.packets++
	in.rx.bytes += uint64(len(b))
	if !in.up && !s.in.self {
		s.ifs.dropOne(now, i, Inbound, ip.DropInterfaceDown, b)
		return
	}
	h, payload, reason := ip.ParseHeader(b)
	if reason != ip.DropNone {
		s.ifs.dropOne(now, i, Inbound, reason, b)
		return
	}
	b = b[:h.TotalLen]
	if s.ifs.tap != nil {
		s.ifs.show(now, i, Inbound, b)
	}
	if h.Options == nil && !s.in.self && f.ours && f.in == i {
		s.in.known = true
		s.local.deliver(now, i, &h, b, payload)
		s.in.known = false
		return
	}
	if h.Is6() {
		h.Src, h.Dst = in.zoned(h.Src), in.zoned(h.Dst)
	}
	if reason := s.routing.screen(i, &h); reason != ip.DropNone {
		if reason == ip.DropOwnSource {
			s.discovery.inputOwn(now, i, &h, payload)
		}
		s.ifs.dropOne(now, i, Inbound, reason, b)
		return
	}
	if h.Options != nil && !s.icmp.readOptions(now, i, &h, b) {
		return
	}
	if s.ifs.translators.count > 0 && !h.Is6() && !s.in.self &&
		s.fwd.translate(now, i, f, &h, b) {
		return
	}
	if s.ifs.isOurs(i, h.Dst) || s.local.catches(&h, payload) {
		if !s.in.self && s.ifs.isOwn(h.Dst) && s.ifs.isPeer(i, h.Src) &&
			s.ifs.isPeer(i, h.Dst) && h.Src.Zone()+h.Dst.Zone() == "" &&
			(s.ifs.translators.count == 0 || s.ifs.natAt(v4Of(h.Dst)) < 0) {
			*f = flow{in: i, ours: true}
		}
		s.local.deliver(now, i, &h, b, payload)
		return
	}
	s.local.flushTrain(now) // keeps the order of delivered and forwarded packets
	if v4Of(h.Dst).isGroup() || h.Is6() && h.Dst.IsMulticast() {
		// RFC 1122 §3.2.1.3: such a packet is discarded silently. The node does not route multicast
		// (224.0.0.0/24: RFC 5771 §4).
		s.ifs.dropOne(now, i, Inbound, ip.DropGroup, b)
		return
	}
	s.fwd.forward(now, i, f, &h, b)
}

// deliver passes a packet for this node to its protocol.
func (l *local) deliver(now clock.Time, i int, h *ip.Header, b, payload []byte) {
	if h.Is6() {
		if r := h.Walk(b); r.Drop != ip.DropNone {
			l.icmp.rejectExtension(now, i, r, b)
			return
		}
		payload = b[h.Len:h.TotalLen]
	}
	if h.IsFragment() {
		l.reassemble(now, i, h, b)
		return
	}
	l.probers.input(now, i, h, payload)
	if l.guest != nil && l.forGuest(now, i, h, b, payload) {
		return
	}
	raw := l.raws.deliver(h, payload)
	var reason ip.DropReason
	if h.Protocol == ip.ProtoTCP {
		reason = l.segment(now, i, h, payload)
	} else {
		l.flushTrain(now)
		reason = l.accept(now, i, h, b, payload, raw)
	}
	if reason != ip.DropNone {
		l.ifs.dropOne(now, i, Inbound, reason, b)
		return
	}
	l.ifs.list[i].rx.delivered++
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
	if !l.in.known && (!l.ifs.isPeer(i, h.Src) || !l.ifs.isPeer(i, h.Dst)) {
		// RFC 9293 §3.9.2.3: neither end may be a broadcast or multicast address.
		return ip.DropMartian
	}
	tuple := tcp.Tuple{LocalAddr: h.Dst, RemoteAddr: h.Src, LocalPort: dst, RemotePort: src}
	ecn := tcp.ECN(h.TOS & 3)
	if l.joins(&tuple, ecn, &header, len(text)) {
		t := &l.gathering
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
	l.gathering = tcp.Segment{
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
	l.gathering.Payload = l.payload
	l.tcp.Input(now, &l.gathering)
}

// joins reports whether a segment continues the current train: the next bytes of the same flow,
// with the same header fields otherwise. Only the last segment of a train may have PSH.
func (l *local) joins(tuple *tcp.Tuple, ecn tcp.ECN, h *tcp.Header, n int) bool {
	t := &l.gathering
	const plain = tcp.ACK
	return l.gathered && ecn == t.ECN && n > 0 && t.Len > 0 && t.Tuple == *tuple &&
		h.Seq == t.Seq+uint32(t.Len) && h.Ack == t.Ack && h.Window == t.Window &&
		t.Flags == plain && h.Flags&^tcp.PSH == plain &&
		h.Options == t.Options && t.Options.SACKCount == 0
}

// foreign reports whether a packet that arrived at interface i is delivered here although its
// destination is not one of the node's addresses.
func (l *local) foreign(i int, dst netip.Addr) bool {
	c := &l.catching
	return (c.tcp || c.udp || c.past) && !l.ifs.isOurs(i, dst)
}
