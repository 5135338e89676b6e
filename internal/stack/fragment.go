package stack

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// reassemble stores a fragment for this node. When it completes a datagram, it delivers the
// datagram as if it had arrived in one packet (RFC 1122 §3.3.2).
func (l *local) reassemble(now clock.Time, i int, h *ip.Header, b []byte) {
	l.flushTrain(now)
	l.in.checked = false // the link has verified fragments, and not the datagram's checksum
	in := &l.ifs.list[i].rx
	whole, reason := l.fragments.Input(now, i, h, b)
	if reason != ip.DropExtension { // this reason does not imply that b is a fragment
		in.fragments++
	}
	switch {
	case reason != ip.DropNone && h.Is6():
		l.icmp.rejectExtension(now, i, h.FragmentProblem(reason), b)
	case reason != ip.DropNone:
		l.ifs.dropOne(now, i, Inbound, reason, b)
	case whole != nil:
		in.fragmented++
		h, payload, reason := ip.ParseHeader(whole)
		if reason != ip.DropNone {
			panic("BUG: stack: reassembly returned an invalid packet: " + reason.String())
		}
		h.FragmentHeader = true
		h.Src, h.Dst = l.ifs.list[i].zoned(h.Src), l.ifs.list[i].zoned(h.Dst)
		if !l.fwd.handleReassembled(now, i, &h, whole) {
			l.deliver(now, i, &h, whole, payload)
		}
		l.flushTrain(now) // the train uses memory that reassembly reuses
	}
	l.discardFragments(now)
}

// discardFragments counts the fragments that reassembly discards. If a datagram was not complete in
// time, and its first fragment arrived, discardFragments sends a Time Exceeded message (RFC 792,
// RFC 1122 §3.3.2).
func (l *local) discardFragments(now clock.Time) {
	for {
		d, ok := l.fragments.Output()
		if !ok {
			return
		}
		l.ifs.list[d.Iface].rx.drops[d.Reason] += uint64(d.Count)
		if d.First != nil {
			if l.ifs.tap != nil {
				l.ifs.one[0] = d.First
				l.ifs.tap(now, d.Iface, Inbound, d.Reason, l.ifs.one[:])
			}
			l.icmp.reportError(now, d.Iface, icmp.TypeTimeExceeded, icmp.CodeReassembly, d.First)
		}
	}
}

// emitFragments puts the fragments of a packet that exceeds its link's MTU into b, in order and
// each as long as possible (RFC 1812 §4.2.2.7). It returns false if b or the link's room was full
// before the last one; the next call continues there.
func (tx *sender) emitFragments(now clock.Time, room []int, b *buffer.Batch, p *packet) bool {
	out := &tx.ifs.list[p.iface]
	f := &tx.fragmenter
	mtu := out.MTU
	if p.mtu > 0 {
		mtu = min(mtu, p.mtu)
	}
	if !f.Reset(p.data, mtu, p.at) {
		// The offsets of an IPv4 fragment's pieces would overflow, which no valid datagram causes.
		// Or an IPv6 packet has no Fragment header, because the MTU has just shrunk.
		reason := ip.DropFragmentTooLong
		if p.data[0]>>4 == 6 {
			reason = ip.DropTooBig
		}
		tx.ifs.dropOne(now, p.iface, Outbound, reason, p.data)
		return true
	}
	for f.More() {
		if b.Full() || room[p.iface] <= 0 {
			p.at = f.Done()
			return false
		}
		header := b.Scratch(f.HeaderLen())
		text := f.Next(header)
		b.Begin(p.iface, p.hop, len(header)+len(text), false)
		b.Add(header)
		b.Add(text)
		room[p.iface]--
		out.tx.fragments++
		out.tx.packets++
		out.tx.bytes += uint64(len(header) + len(text))
		if tx.ifs.tap != nil {
			tx.ifs.showLast(now, p.iface, b)
		}
	}
	out.tx.fragmented++
	return true
}
