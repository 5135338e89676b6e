package stack

import (
	"math/rand/v2"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// forwarder forwards packets.
type forwarder struct {
	ifs     *Interfaces
	routing *Routing
	icmp    *icmpHost
	local   *local
	out     *sender
	in      *incoming
	knobs   *Knobs
	rng     *rand.Rand

	packets [][]byte // packets to forward, in the driver's memory; valid until its next Input
	queue   []run    // the packets as runs
	sent    int      // number of packets that were sent or dropped
	emitted int      // number of runs that were sent or dropped
}

// run is a sequence of packets to forward to one next hop. All have size bytes, except the last,
// which may be shorter.
type run struct {
	iface   int
	hop     netip.Addr
	size    int
	packets int
	at      int  // number of bytes of the first packet's payload that were sent in fragments
	checked bool // the transport checksums are verified; forwarding does not change them
	short   bool // the last packet is shorter, so no packet may follow it
}

// forward forwards a packet whose destination is not this node (RFC 1812 §5.2.1).
func (fw *forwarder) forward(now clock.Time, i int, f *flow, h *ip.Header, b []byte) {
	if !fw.ifs.router || h.Is6() && h.Dst.IsLinkLocalUnicast() {
		// A host discards the packet silently (RFC 1122 §3.2.1.3), and so does a router if the
		// destination is link-local (RFC 4291 §2.5.6).
		fw.ifs.dropOne(now, i, Inbound, ip.DropNotForUs, b)
		return
	}
	route, ok := fw.routing.table.Hop(h.Dst)
	if !ok || route.Kind != ip.Forwarded {
		fw.dropUnroutable(now, i, route.Kind, b)
		return
	}
	if fw.ifs.translators.count > 0 && !fw.passes(now, i, route.Iface, h, b) {
		return
	}
	if route.OnLink && fw.ifs.broadcast(route.Iface, v4Of(h.Dst)) {
		fw.directedBroadcast(now, i, route.Iface, h, b)
		return
	}
	if h.Is6() && h.Src.Zone() != "" && route.Iface != i {
		fw.ifs.dropOne(now, i, Inbound, ip.DropScope, b)
		fw.icmp.reportError(now, i, icmp.TypeUnreachable6, icmp.CodeScope, b)
		return
	}
	if h.TTL <= 1 {
		fw.ifs.dropOne(now, i, Inbound, ip.DropTTL, b)
		fw.icmp.reportError(now, i, icmp.TypeTimeExceeded, icmp.CodeTTL, b)
		return
	}
	fw.ifs.list[i].rx.forwarded++ // the outgoing interface counts later drops
	switch {
	case fw.blocked(now, i, &route, h, b):
	case fw.loses(i, route.Iface):
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropLossy, b)
	default:
		fw.pass(now, i, f, h, b, &route)
	}
}

// blocked reports whether a packet cannot leave on its route. If so, it drops the packet and
// reports an error to the sender through interface i.
func (fw *forwarder) blocked(
	now clock.Time, i int, route *ip.Hop, h *ip.Header, b []byte,
) bool {
	out := &fw.ifs.list[route.Iface]
	switch {
	case route.OnLink && !fw.ifs.present(route.Iface, h.Dst):
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropUnknownNeighbor, b)
		fw.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeHost, b)
	case !out.up:
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropInterfaceDown, b)
		fw.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeHost, b)
	case len(b) > out.MTU && h.DF:
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropTooBig, b)
		fw.icmp.reportTooBig(now, i, out.MTU, b)
	default:
		return false
	}
	return true
}

// pass queues a packet of interface i for its route, and keeps the decision for its flow.
func (fw *forwarder) pass(
	now clock.Time, i int, f *flow, h *ip.Header, b []byte, route *ip.Hop,
) {
	out := &fw.ifs.list[route.Iface]
	entry := flow{
		in: i, out: route.Iface, hop: route.Next, mtu: out.MTU,
		lossy: fw.ifs.list[i].loss > 0 || out.loss > 0,
	}
	if fw.ifs.translators.count > 0 {
		var cached bool
		entry.nat, entry.inward, cached = fw.translated(i, route.Iface)
		entry.inside = h.Dst
		if !cached {
			entry.mtu = 0
		}
		if !fw.rewrite(now, i, route.Iface, h, b) {
			return
		}
	}
	fw.icmp.stamp(now, h, b, out.addr)
	ip.DecrementTTL(b)
	fw.enqueue(route.Iface, route.Next, b)
	*f = entry
}

// dropUnroutable drops a packet with no route, or a blackhole, unreachable or prohibit route.
func (fw *forwarder) dropUnroutable(now clock.Time, i int, kind ip.Kind, b []byte) {
	switch kind {
	case ip.Forwarded:
		fw.ifs.dropOne(now, i, Inbound, ip.DropNoRoute, b)
		fw.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeNet, b)
	case ip.Unreachable:
		fw.ifs.dropOne(now, i, Inbound, ip.DropBlackhole, b)
		fw.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeHost, b)
	case ip.Prohibited:
		// RFC 1812 §5.2.7.1: routers use code 13, and not 9 or 10.
		fw.ifs.dropOne(now, i, Inbound, ip.DropProhibited, b)
		fw.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeAdminProhibited, b)
	case ip.Blackhole:
		fw.ifs.dropOne(now, i, Inbound, ip.DropBlackhole, b)
	}
}

// loses draws whether lossyforward drops a packet from interface in to interface out. It draws
// once, with the larger share of the two interfaces. So a share set on one interface counts in both
// directions there, and a share set on all does not count twice.
func (fw *forwarder) loses(in, out int) bool {
	p := max(fw.ifs.list[in].loss, fw.ifs.list[out].loss)
	return p > 0 && fw.rng.Float64() < p
}

// enqueue queues a packet for Output, in the last run if its interface, next hop and size fit.
func (fw *forwarder) enqueue(out int, hop netip.Addr, b []byte) {
	fw.packets = append(fw.packets, b)
	checked := fw.in.checked
	if last := len(fw.queue) - 1; last >= 0 {
		r := &fw.queue[last]
		if !r.short && len(b) <= r.size && r.iface == out && r.hop == hop && r.checked == checked {
			r.packets++
			r.short = len(b) < r.size
			return
		}
	}
	fw.queue = append(fw.queue, run{
		iface: out, hop: hop, size: len(b), packets: 1, checked: checked,
	})
}

// output moves forwarded packets into b, and returns true when none is left. If a link has no room
// or b is full, it returns false while b holds packets: the caller sends those and calls output
// again. If b is empty, output drops the packets for which there is no room.
func (fw *forwarder) output(now clock.Time, room []int, b *buffer.Batch) bool {
	for ; fw.emitted < len(fw.queue); fw.emitted++ {
		r := &fw.queue[fw.emitted]
		out := &fw.ifs.list[r.iface]
		for r.packets > 0 {
			switch {
			case !out.up:
				fw.drop(now, r, r.packets, ip.DropInterfaceDown)
			case len(fw.packets[fw.sent]) > out.MTU && fw.packets[fw.sent][0]>>4 == 6:
				fw.drop(now, r, 1, ip.DropTooBig) // the MTU has just shrunk
			case len(fw.packets[fw.sent]) > out.MTU:
				if !fw.fragment(now, room, b, r) {
					return false
				}
			case room[r.iface] > 0 && !b.Full():
				fw.emitRun(now, room, b, r)
			case len(b.Trains()) > 0:
				return false
			default:
				fw.drop(now, r, r.packets, ip.DropQueueFull)
			}
		}
	}
	fw.packets, fw.queue, fw.sent, fw.emitted = fw.packets[:0], fw.queue[:0], 0, 0
	return true
}

// emitRun puts packets of a run into b as one train, as many as the train and the link's room
// allow.
func (fw *forwarder) emitRun(now clock.Time, room []int, b *buffer.Batch, r *run) {
	packets := fw.packets[fw.sent:][:min(r.packets, room[r.iface])]
	n, bytes := b.AddRun(r.iface, r.hop, r.checked, packets)
	fw.sent, r.packets = fw.sent+n, r.packets-n
	out := &fw.ifs.list[r.iface]
	room[r.iface] -= n
	out.tx.packets += uint64(n)
	out.tx.bytes += uint64(bytes)
	for _, p := range packets[:n] {
		if fw.ifs.tap == nil { // checked again, because the tap may remove itself
			break
		}
		fw.ifs.show(now, r.iface, Outbound, p)
	}
}

// drop drops the next n packets of a run.
func (fw *forwarder) drop(now clock.Time, r *run, n int, reason ip.DropReason) {
	for _, p := range fw.packets[fw.sent:][:n] {
		fw.ifs.dropOne(now, r.iface, Outbound, reason, p)
	}
	fw.sent, r.packets = fw.sent+n, r.packets-n
}

// fragment puts the fragments of the next packet of a run into b, and reports whether b took all of
// them. If the link has no room for all, it sends none: incomplete datagrams only waste the link.
func (fw *forwarder) fragment(now clock.Time, room []int, b *buffer.Batch, r *run) bool {
	p := packet{iface: r.iface, hop: r.hop, data: fw.packets[fw.sent], at: r.at}
	f := &fw.out.fragmenter
	if f.Reset(p.data, fw.ifs.list[r.iface].MTU, p.at) && f.Left() > room[r.iface] {
		if len(b.Trains()) > 0 {
			return false // the owner calls again, as for output
		}
		fw.drop(now, r, 1, ip.DropQueueFull)
		return true
	}
	if !fw.out.emitFragments(now, room, b, &p) {
		r.at = p.at
		return false
	}
	r.at, fw.sent, r.packets = 0, fw.sent+1, r.packets-1
	return true
}

// directedBroadcast handles a packet to the broadcast address of another link of this router. It
// delivers the packet to this node, and forwards it to that link if the knob is on (RFC 1812
// §5.2.3, RFC 2644 §2).
func (fw *forwarder) directedBroadcast(now clock.Time, i, out int, h *ip.Header, b []byte) {
	if fw.knobs.IP.DirectedBroadcast && h.TTL > 1 && fw.ifs.list[out].up &&
		len(b) <= fw.ifs.list[out].MTU {
		copied := append([]byte(nil), b...) // each node on the link gets its own copy
		fw.icmp.stamp(now, h, copied, fw.ifs.list[out].addr)
		ip.DecrementTTL(copied)
		fw.out.enqueue(now, packet{iface: out, hop: h.Dst, data: copied})
	}
	fw.local.deliver(now, i, h, b, b[h.Len:])
}
