package stack

// The way in, hop by hop:
//
//	link.ReadBatch   one datagram or a coalesced train of them
//	node/loop        stamps the batch, once, and splits it into packets
//	Input            the packets of one interface, one by one        (here)
//	follow           forwards what goes the way of one before it     (flow.go)
//	receive          parses and verifies the IP header, once         (here)
//	deliver          to a protocol, or forward                       (demux.go, forward.go)
//	segment          verifies the TCP checksum, gathers trains       (demux.go)
//	tcp Host.Input   finds the connection
//	tcp Conn.input   SEGMENT ARRIVES
//	buffer.Ring      the bytes, in order
//	node Conn.Read   the application

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Input takes packets that arrived by one interface at now; checked says that somebody has just
// made or verified the transport's checksums of all of them. Their bytes are borrowed, and changed
// in place where packets are forwarded, until the owner has drained Output; whatever the links did
// not take by then is dropped as a router drops it.
func (s *Stack) Input(now clock.Time, iface int, checked bool, packets [][]byte) {
	s.out.memory.reuse()
	s.in.checked = checked
	for _, p := range packets {
		if !s.follow(now, iface, p) {
			s.receive(now, iface, slices.Clip(p))
		}
	}
	s.in.checked = false
	s.flushTrain(now)
}

// receive is the IP layer's side of one packet.
func (s *Stack) receive(now clock.Time, i int, b []byte) {
	in := &s.interfaces[i]
	in.rx.packets++
	in.rx.bytes += uint64(len(b))
	if !in.up && !s.in.self {
		s.dropOne(now, i, Inbound, ip.DropInterfaceDown, b)
		return
	}
	h, payload, reason := ip.ParseHeader(b)
	if reason != ip.DropNone {
		s.dropOne(now, i, Inbound, reason, b)
		return
	}
	b = b[:h.TotalLen]
	if s.tap != nil {
		s.in.one[0] = b
		s.tap(now, i, Inbound, ip.DropNone, s.in.one[:])
	}
	ends := ip.Ends(b)
	f := s.flows.of(ends)
	if f.ours && f.ends == ends && f.in == i && h.Options == nil && !s.in.self {
		s.in.met = true
		s.deliver(now, i, &h, b, payload)
		s.in.met = false
		return
	}
	if reason := s.screen(i, &h); reason != ip.DropNone {
		s.dropOne(now, i, Inbound, reason, b)
		return
	}
	if h.Options != nil && !s.readOptions(now, i, &h, b) {
		return
	}
	if s.isOurs(i, h.Dst) || s.catches(&h, payload) {
		if !s.in.self && s.isHost(h.Dst) && s.isPeer(i, h.Src) && s.isPeer(i, h.Dst) {
			*f = flow{ends: ends, in: i, ours: true}
		}
		s.deliver(now, i, &h, b, payload)
		return
	}
	s.flushTrain(now) // order is kept between what is ours and what is not
	if isGroup(h.Dst) {
		// RFC 1122 §3.2.1.3: silently. Nor is any group's packet passed on: 224.0.0.0/24
		// never is (RFC 5771 §4), and nobody here routes the others.
		s.dropOne(now, i, Inbound, ip.DropGroup, b)
		return
	}
	s.forward(now, i, &h, b)
}

// isOurs reports whether dst is one of the node's addresses, all on the link that the
// packet came by, or a group there that somebody here is in (RFC 1122 §3.2.1.3).
func (s *Stack) isOurs(i int, dst ip.Addr) bool {
	if s.isHost(dst) {
		return true
	}
	if isGroup(dst) {
		return s.joined(i, dst)
	}
	return dst == limited || s.broadcast(i, dst)
}

func be32(a ip.Addr) uint32 {
	return uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
}
