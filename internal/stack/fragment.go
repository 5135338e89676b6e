package stack

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// reassemble takes a fragment for this node, and delivers the datagram that it
// completes as if that had come whole (RFC 1122 §3.3.2).
func (s *Stack) reassemble(now clock.Time, i int, h *ip.Header, b []byte) {
	s.flushTrain(now)
	s.in.checked = false // what the link has checked is packets
	in := &s.interfaces[i].rx
	in.fragments++
	whole, reason := s.fragments.Input(now, i, h, b)
	switch {
	case reason != ip.DropNone:
		s.dropOne(now, i, Inbound, reason, b)
	case whole != nil:
		in.fragmented++
		h, payload, sound := ip.ParseHeader(whole)
		if sound != ip.DropNone {
			panic("BUG: stack: a datagram put together to a packet that is " + sound.String())
		}
		s.deliver(now, i, &h, whole, payload)
		s.flushTrain(now) // its text is lent by what is asked next
	}
	s.discardFragments(now)
}

// discardFragments counts the fragments that were held and are discarded. A
// datagram that did not get whole in time is reported if its fragment zero had come
// (RFC 792, RFC 1122 §3.3.2).
func (s *Stack) discardFragments(now clock.Time) {
	for {
		d, ok := s.fragments.Output()
		if !ok {
			return
		}
		s.interfaces[d.Iface].rx.drops[d.Reason] += uint64(d.Count)
		if d.First != nil {
			if s.tap != nil {
				s.in.one[0] = d.First
				s.tap(now, d.Iface, Inbound, d.Reason, s.in.one[:])
			}
			s.reportError(now, icmp.TypeTimeExceeded, icmp.CodeReassembly, d.First)
		}
	}
}

// Fragments returns what is held of datagrams that are not whole, and what became of
// the others.
func (s *Stack) Fragments() ip.ReassemblyInfo { return s.fragments.Info() }

// mayCut reports whether a packet of our own may leave in fragments, as RFC 791 §3.2 has
// it. TCP knows the way's MTU, and the family's own protocols expect theirs whole.
func mayCut(h *ip.Header) bool {
	switch h.Protocol {
	case ip.ProtoTCP, ip.ProtoTest, ip.ProtoRIP:
		return false
	}
	return !h.DF
}

// emitFragments puts the fragments of a packet that is longer than its link's MTU
// into b, in order and each as long as it can be (RFC 1812 §4.2.2.7), and reports
// whether that were all: b may get full or the link's room end before, and the next
// call goes on then.
func (s *Stack) emitFragments(now clock.Time, room []int, b *buffer.Batch, p *packet) bool {
	out := &s.interfaces[p.iface]
	f := &s.out.cut
	if !f.Reset(p.data, out.MTU, p.at) {
		// No datagram has such a fragment, and its pieces' offsets would begin anew.
		s.dropOne(now, p.iface, Outbound, ip.DropFragmentTooLong, p.data)
		return true
	}
	for f.More() {
		if b.Full() || room[p.iface] <= 0 {
			p.at = f.Done()
			return false
		}
		header := b.Scratch(f.HeaderLen())
		text := f.Next(header)
		b.Begin(p.iface, p.hop, len(header)+len(text))
		b.Add(header)
		b.Add(text)
		room[p.iface]--
		out.tx.fragments++
		out.tx.packets++
		out.tx.bytes += uint64(len(header) + len(text))
		if s.tap != nil {
			trains := b.Trains()
			last := &trains[len(trains)-1]
			s.tap(now, p.iface, Outbound, ip.DropNone, last.Packet(last.Count-1))
		}
	}
	out.tx.fragmented++
	return true
}

// cutForwarded puts the fragments of a packet that is passed on into b, and reports
// whether b took all. If the link does not, none of it goes: fragments of what cannot
// get whole are in the way of others.
func (s *Stack) cutForwarded(now clock.Time, room []int, b *buffer.Batch, r *run) bool {
	p := packet{iface: r.iface, hop: r.hop, data: r.data, at: r.at}
	f := &s.out.cut
	if f.Reset(p.data, s.interfaces[r.iface].MTU, p.at) && f.Left() > room[r.iface] {
		if len(b.Trains()) > 0 {
			return false // as in outputForwarded: the link is asked again
		}
		s.dropRun(now, r, ip.DropQueueFull)
		return true
	}
	done := s.emitFragments(now, room, b, &p)
	r.at = p.at
	return done
}
