package stack

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// incoming is the state of the packets that are being received.
type incoming struct {
	checked bool // the transport's checksums are known to be correct
	self    bool // the packets come from the node itself
	met     bool // their flow is in the cache
}

// Input receives packets of one interface. checked says that their transport checksums are correct.
// Input borrows the packets until Output is drained, and modifies those that it forwards; it drops
// packets whose link has no room then. passed reports that all packets were forwarded by cached
// decisions and Output has nothing else to send, so no deadline changed and no user has to wake.
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

// receive is the IP layer's processing of one packet.
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
	s.local.flushTrain(now) // keeps the order of delivered and forwarded packets
	if isGroup(h.Dst) {
		// RFC 1122 §3.2.1.3: silently. The node does not route multicast (224.0.0.0/24: RFC 5771
		// §4).
		s.ifs.dropOne(now, i, Inbound, ip.DropGroup, b)
		return
	}
	s.fwd.forward(now, i, &h, b)
}
