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

	queue   []run // lent by the driver until its next Input
	emitted int   // how many of them are in a batch
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
		fw.queue = append(fw.queue, run{
			iface: route.Iface, hop: route.Next, data: b, size: len(b), sound: fw.in.checked,
		})
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

// follow forwards the packets at the front of a batch that go where others went before them, and
// returns how many. It stops in front of a packet that may need more than that: one between other
// addresses, to this node, with options, with an error, at its last hop.
func (fw *forwarder) follow(now clock.Time, i int, packets [][]byte) int {
	ifs, checked := fw.ifs, fw.in.checked
	in := &ifs.list[i]
	var f *flow
	for n, b := range packets {
		if len(b) < ip.HeaderLen {
			return n
		}
		if ends := ip.Ends(b); f == nil || f.ends != ends {
			f = fw.routing.flows.of(ends)
		}
		if f.in != i || len(b) > f.mtu || !ip.IsPlain(b, f.ends) {
			return n
		}
		fw.local.flushTrain(now) // order is kept between what is ours and what is not
		in.rx.packets++
		in.rx.bytes += uint64(len(b))
		in.rx.forwarded++
		if ifs.tap != nil {
			ifs.show(now, i, Inbound, b)
		}
		if f.lossy && fw.loses(i, f.out) {
			ifs.dropOne(now, f.out, Outbound, ip.DropLossy, b)
			continue
		}
		ip.Forward(b)
		if k := len(fw.queue); k == 0 || !fw.queue[k-1].takes(f, b, checked) {
			fw.queue = append(fw.queue, run{
				iface: f.out, hop: f.hop, data: b, size: len(b), sound: checked,
			})
		}
	}
	return len(packets)
}

// output moves others' packets into b. A packet whose link has no
// room, behind that link's own queue, is dropped as a router drops it; but where the
// room has gone into b, the owner asks again, for the link may have taken that by then.
func (fw *forwarder) output(now clock.Time, room []int, b *buffer.Batch) bool {
	for ; fw.emitted < len(fw.queue); fw.emitted++ {
		r := &fw.queue[fw.emitted]
		out := &fw.ifs.list[r.iface]
		if !out.up {
			fw.dropRun(now, r, ip.DropInterfaceDown)
			continue
		}
		if r.size > out.MTU {
			if !fw.cut(now, room, b, r) {
				return false
			}
			continue
		}
		for len(r.data) > 0 && room[r.iface] > 0 {
			if b.Full() {
				return false
			}
			fw.emitRun(now, room, b, r)
		}
		if len(r.data) > 0 {
			if len(b.Trains()) > 0 {
				return false
			}
			fw.dropRun(now, r, ip.DropQueueFull)
		}
	}
	fw.queue, fw.emitted = fw.queue[:0], 0
	return true
}

// emitRun puts as many packets of a run into b as one train and the link's room take.
func (fw *forwarder) emitRun(now clock.Time, room []int, b *buffer.Batch, r *run) {
	data := r.data[:min(len(r.data), room[r.iface]*r.size)]
	took := b.AddRun(r.iface, r.hop, data, r.size)
	if r.sound {
		b.Vouch() // forwarding changes nothing that the transport's checksum is over
	}
	out := &fw.ifs.list[r.iface]
	bytes := min(len(data), took*r.size)
	room[r.iface] -= took
	out.tx.packets += uint64(took)
	out.tx.bytes += uint64(bytes)
	if fw.ifs.tap != nil {
		for left := data[:bytes]; len(left) > 0; {
			p := left[:min(r.size, len(left))]
			fw.ifs.show(now, r.iface, Outbound, p)
			left = left[len(p):]
		}
	}
	r.data = r.data[bytes:]
}

// dropRun counts what is left of a run under a reason.
func (fw *forwarder) dropRun(now clock.Time, r *run, reason ip.DropReason) {
	for len(r.data) > 0 {
		p := r.data[:min(r.size, len(r.data))]
		fw.ifs.dropOne(now, r.iface, Outbound, reason, p)
		r.data = r.data[len(p):]
	}
}

// cut puts the fragments of a packet that is passed on into b, and reports
// whether b took all. If the link does not, none of it goes: fragments of what cannot
// get whole are in the way of others.
func (fw *forwarder) cut(now clock.Time, room []int, b *buffer.Batch, r *run) bool {
	p := packet{iface: r.iface, hop: r.hop, data: r.data, at: r.at}
	f := &fw.out.cut
	if f.Reset(p.data, fw.ifs.list[r.iface].MTU, p.at) && f.Left() > room[r.iface] {
		if len(b.Trains()) > 0 {
			return false // as in output: the link is asked again
		}
		fw.dropRun(now, r, ip.DropQueueFull)
		return true
	}
	done := fw.out.emitFragments(now, room, b, &p)
	r.at = p.at
	return done
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
