package stack

import (
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// forwarder passes on packets for others.
type forwarder struct {
	ifs     *Interfaces
	routing *Routing
	icmp    *icmpHost
	local   *local
	out     *sender
	in      *incoming
	knobs   *Knobs
	rng     *rand.Rand

	packets [][]byte // to be forwarded; their bytes are the driver's until its next Input
	queue   []run    // of these packets
	sent    int      // packets that have left or were dropped
	emitted int      // runs of them
}

// forward passes on a packet that is for somebody else (RFC 1812 §5.2.1).
func (fw *forwarder) forward(now clock.Time, i int, h *ip.Header, b []byte) {
	if !fw.routing.forwards {
		// RFC 1122 §3.2.1.3: a host discards it, and says nothing about it.
		fw.ifs.dropOne(now, i, Inbound, ip.DropNotForUs, b)
		return
	}
	route, ok := fw.routing.table.Hop(h.Dst)
	if !ok || route.Kind != ip.Forwarded {
		fw.noWay(now, i, route.Kind, b)
		return
	}
	out := &fw.ifs.list[route.Iface]
	if route.OnLink && fw.ifs.broadcast(route.Iface, h.Dst) {
		fw.directedBroadcast(now, i, route.Iface, h, b)
		return
	}
	if h.TTL <= 1 {
		fw.ifs.dropOne(now, i, Inbound, ip.DropTTL, b)
		fw.icmp.reportError(now, icmp.TypeTimeExceeded, icmp.CodeTTL, b)
		return
	}
	fw.ifs.list[i].rx.forwarded++ // what befalls it from here on is counted at the way out
	switch {
	case route.OnLink && !fw.ifs.present(route.Iface, h.Dst):
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropUnknownNeighbor, b)
		fw.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodeHost, b)
	case !out.up:
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropInterfaceDown, b)
		fw.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodeHost, b)
	case len(b) > out.MTU && h.DF:
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropTooBig, b)
		fw.icmp.reportTooBig(now, out.MTU, b)
	case fw.loses(i, route.Iface):
		fw.ifs.dropOne(now, route.Iface, Outbound, ip.DropLossy, b)
	default:
		fw.icmp.stamp(now, h, b, out.addr)
		ip.Forward(b)
		fw.enqueue(route.Iface, route.Next, b)
		ends := ip.Ends(b)
		*fw.routing.flows.of(ends) = flow{
			ends: ends, in: i, out: route.Iface, hop: route.Next, mtu: out.MTU,
			lossy: fw.ifs.list[i].loss > 0 || out.loss > 0,
		}
	}
}

// noWay drops a packet that no route leads on, or one that leads nowhere on purpose.
func (fw *forwarder) noWay(now clock.Time, i int, kind ip.Kind, b []byte) {
	switch kind {
	case ip.Forwarded:
		fw.ifs.dropOne(now, i, Inbound, ip.DropNoRoute, b)
		fw.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodeNet, b)
	case ip.Unreachable:
		fw.ifs.dropOne(now, i, Inbound, ip.DropBlackhole, b)
		fw.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodeHost, b)
	case ip.Prohibited:
		// RFC 1812 §5.2.7.1: of the three codes for that, 9 and 10 are others' to use.
		fw.ifs.dropOne(now, i, Inbound, ip.DropProhibited, b)
		fw.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodeAdminProhibited, b)
	case ip.Blackhole:
		fw.ifs.dropOne(now, i, Inbound, ip.DropBlackhole, b)
	}
}

// loses draws whether lossyforward drops a packet that came by interface in and
// leaves by out: once, with the larger share of the two, so that a share set on
// one interface is for both directions there, and one set on all is not doubled.
func (fw *forwarder) loses(in, out int) bool {
	p := max(fw.ifs.list[in].loss, fw.ifs.list[out].loss)
	return p > 0 && fw.rng.Float64() < p
}

// follow forwards a packet that goes where others went before it. False: it may need more, being
// between other addresses, to this node, with options, with an error, or at its last hop.
func (fw *forwarder) follow(now clock.Time, i int, b []byte) bool {
	if len(b) < ip.HeaderLen {
		return false
	}
	f := fw.routing.flows.of(ip.Ends(b))
	if f.in != i || len(b) > f.mtu || !ip.IsPlain(b, f.ends) {
		return false
	}
	fw.local.flushTrain(now) // order is kept between what is ours and what is not
	ifs := fw.ifs
	in := &ifs.list[i].rx
	in.packets++
	in.bytes += uint64(len(b))
	in.forwarded++
	if ifs.tap != nil {
		ifs.show(now, i, Inbound, b)
	}
	if f.lossy && fw.loses(i, f.out) {
		ifs.dropOne(now, f.out, Outbound, ip.DropLossy, b)
		return true
	}
	ip.Forward(b)
	fw.enqueue(f.out, f.hop, b)
	return true
}

// enqueue has a packet wait for Output, in the run before it if it goes the same way.
func (fw *forwarder) enqueue(out int, hop ip.Addr, b []byte) {
	fw.packets = append(fw.packets, b)
	sound := fw.in.checked
	if last := len(fw.queue) - 1; last >= 0 {
		r := &fw.queue[last]
		if !r.short && len(b) <= r.size && r.iface == out && r.hop == hop && r.sound == sound {
			r.packets++
			r.short = len(b) < r.size
			return
		}
	}
	fw.queue = append(fw.queue, run{iface: out, hop: hop, size: len(b), packets: 1, sound: sound})
}

// output moves others' packets into b. A packet whose link has no room is dropped. But where the
// room has gone into b, the owner asks again: the link may have taken that by then.
func (fw *forwarder) output(now clock.Time, room []int, b *buffer.Batch) bool {
	for ; fw.emitted < len(fw.queue); fw.emitted++ {
		r := &fw.queue[fw.emitted]
		out := &fw.ifs.list[r.iface]
		for r.packets > 0 {
			switch {
			case !out.up:
				fw.drop(now, r, r.packets, ip.DropInterfaceDown)
			case len(fw.packets[fw.sent]) > out.MTU:
				if !fw.cut(now, room, b, r) {
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

// emitRun puts as many packets of a run into b as one train and the link's room take.
func (fw *forwarder) emitRun(now clock.Time, room []int, b *buffer.Batch, r *run) {
	packets := fw.packets[fw.sent:][:min(r.packets, room[r.iface])]
	n, bytes := b.AddRun(r.iface, r.hop, r.sound, packets)
	fw.sent, r.packets = fw.sent+n, r.packets-n
	out := &fw.ifs.list[r.iface]
	room[r.iface] -= n
	out.tx.packets += uint64(n)
	out.tx.bytes += uint64(bytes)
	if fw.ifs.tap != nil {
		for _, p := range packets[:n] {
			fw.ifs.show(now, r.iface, Outbound, p)
		}
	}
}

// drop drops the next n packets of a run.
func (fw *forwarder) drop(now clock.Time, r *run, n int, reason ip.DropReason) {
	for _, p := range fw.packets[fw.sent:][:n] {
		fw.ifs.dropOne(now, r.iface, Outbound, reason, p)
	}
	fw.sent, r.packets = fw.sent+n, r.packets-n
}

// cut puts the fragments of the next packet of a run into b, and reports whether b took all. If the
// link has no room for all, none is sent: they would only be in the way of others.
func (fw *forwarder) cut(now clock.Time, room []int, b *buffer.Batch, r *run) bool {
	p := packet{iface: r.iface, hop: r.hop, data: fw.packets[fw.sent], at: r.at}
	f := &fw.out.cut
	if f.Reset(p.data, fw.ifs.list[r.iface].MTU, p.at) && f.Left() > room[r.iface] {
		if len(b.Trains()) > 0 {
			return false // as in output: the link is asked again
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

// directedBroadcast receives what is for all on another link of a router's than it came
// by, and passes it on there if that is asked for (RFC 1812 §5.2.3, RFC 2644 §2).
func (fw *forwarder) directedBroadcast(now clock.Time, i, out int, h *ip.Header, b []byte) {
	if fw.knobs.IP.DirectedBroadcast && h.TTL > 1 && fw.ifs.list[out].up &&
		len(b) <= fw.ifs.list[out].MTU {
		copied := append([]byte(nil), b...) // it is queued for each node there
		fw.icmp.stamp(now, h, copied, fw.ifs.list[out].addr)
		ip.Forward(copied)
		fw.out.enqueue(now, out, h.Dst, copied)
	}
	fw.local.deliver(now, i, h, b, b[h.IHL:])
}
