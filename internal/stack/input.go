package stack

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// incoming is what is known of the packets that are being received.
type incoming struct {
	checked bool // somebody has just made or verified the transport's checksums
	self    bool // they come from the node itself
	met     bool // their flow is known
}

// Input takes packets of one interface; checked: their transport checksums are right. It borrows
// their bytes, and changes what it forwards, until Output is drained; what has no room then is
// dropped. passed: all went the way of their flows, and Output has nothing else to send, so no
// deadline changed and no user has news.
func (s *Stack) Input(now clock.Time, iface int, checked bool, packets [][]byte) (passed bool) {
	s.out.memory.reuse()
	s.in.checked, passed = checked, len(s.fwd.queue) == 0
	for _, b := range packets {
		if !s.fwd.follow(now, iface, b) {
			s.receive(now, iface, b)
			passed = false
		}
	}
	s.in.checked = false
	s.local.flushTrain(now)
	return passed && !s.unsent() && !s.asks()
}

// receive is the IP layer's side of one packet.
func (s *Stack) receive(now clock.Time, i int, b []byte) {
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
	ends := ip.Ends(b)
	f := s.routing.flows.of(ends)
	if f.ours && f.ends == ends && f.in == i && h.Options == nil && !s.in.self {
		s.in.met = true
		s.local.deliver(now, i, &h, b, payload)
		s.in.met = false
		return
	}
	if reason := s.routing.screen(i, &h); reason != ip.DropNone {
		s.ifs.dropOne(now, i, Inbound, reason, b)
		return
	}
	if h.Options != nil && !s.icmp.readOptions(now, i, &h, b) {
		return
	}
	if s.ifs.isOurs(i, h.Dst) || s.local.catches(&h, payload) {
		if !s.in.self && s.ifs.isHost(h.Dst) && s.ifs.isPeer(i, h.Src) && s.ifs.isPeer(i, h.Dst) {
			*f = flow{ends: ends, in: i, ours: true}
		}
		s.local.deliver(now, i, &h, b, payload)
		return
	}
	s.local.flushTrain(now) // order is kept between what is ours and what is not
	if isGroup(h.Dst) {
		// RFC 1122 §3.2.1.3: silently. Nobody here routes groups (224.0.0.0/24: RFC 5771 §4).
		s.ifs.dropOne(now, i, Inbound, ip.DropGroup, b)
		return
	}
	s.fwd.forward(now, i, &h, b)
}
