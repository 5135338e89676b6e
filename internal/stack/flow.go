package stack

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// flow is the decision about one packet. Later packets between the same two addresses that arrive
// by the same interface take it.
type flow struct {
	ends  uint64 // the addresses, as ip.Ends reads them
	in    int
	ours  bool // they are for this node, and their ends can be those of a connection
	lossy bool // they are for others, and loss is drawn for each
	// mtu is that of the interface out, by which what is for others leaves for the next hop. It is
	// zero for what is ours, and where nothing was decided.
	mtu int
	out int
	hop ip.Addr
}

// flows are the flows of recent packets. Each has one place in the table and replaces the flow that
// is there. Stack.rerouted clears the table; whatever changes what a decision rests on calls it.
type flows [1 << flowBits]flow

const flowBits = 6

func (f *flows) of(ends uint64) *flow { return &f[ends*0x9e3779b97f4a7c15>>(64-flowBits)] }

// run is one or more packets for others on their way out, back to back in the memory
// that the driver lent: each of size bytes but the last, which may be shorter.
type run struct {
	iface int
	hop   ip.Addr
	data  []byte
	size  int
	at    int  // bytes of its payload that have left in fragments, if it is cut
	sound bool // the transport's checksums were checked when they came
	short bool // the last is shorter, and none joins it
}

// follow forwards a packet that came by interface i where one before it went. It is false, and
// nothing has happened, for a packet that may need more than that: one between others, to this
// node, with options, with an error, at its last hop.
func (s *Stack) follow(now clock.Time, i int, b []byte) bool {
	if len(b) < ip.HeaderLen {
		return false
	}
	f := s.flows.of(ip.Ends(b))
	if f.in != i || len(b) > f.mtu || !ip.IsPlain(b, f.ends) {
		return false
	}
	if s.in.gathered {
		s.flushTrain(now) // order is kept between what is ours and what is not
	}
	in := &s.interfaces[i]
	in.rx.packets++
	in.rx.bytes += uint64(len(b))
	in.rx.forwarded++
	if s.tap != nil {
		s.in.one[0] = b
		s.tap(now, i, Inbound, ip.DropNone, s.in.one[:])
	}
	if f.lossy && s.loses(i, f.out) {
		s.dropOne(now, f.out, Outbound, ip.DropLossy, b)
		return true
	}
	ip.Forward(b)
	if k := len(s.out.forward); k == 0 || !s.out.forward[k-1].takes(f, b, s.in.checked) {
		s.out.forward = append(s.out.forward, run{
			iface: f.out, hop: f.hop, data: b, size: len(b), sound: s.in.checked,
		})
	}
	return true
}

// takes puts b, of flow f, at the run's end if it lies there and goes the same way. Only what
// a frame has together is given the capacity to be joined.
func (r *run) takes(f *flow, b []byte, sound bool) bool {
	end := len(r.data)
	if r.short || r.iface != f.out || r.hop != f.hop || r.sound != sound ||
		len(b) > r.size || end+len(b) > cap(r.data) {
		return false
	}
	longer := r.data[:end+len(b)]
	if &longer[end] != &b[0] {
		return false
	}
	r.data, r.short = longer, len(b) < r.size
	return true
}

// outputForwarded moves others' packets into b. A packet whose link has no
// room, behind that link's own queue, is dropped as a router drops it; but where the
// room has gone into b, the owner asks again, for the link may have taken that by then.
func (s *Stack) outputForwarded(now clock.Time, room []int, b *buffer.Batch) bool {
	o := &s.out
	for ; o.emitted < len(o.forward); o.emitted++ {
		r := &o.forward[o.emitted]
		if !s.interfaces[r.iface].up {
			s.dropRun(now, r, ip.DropInterfaceDown)
			continue
		}
		if r.size > s.interfaces[r.iface].MTU {
			if !s.cutForwarded(now, room, b, r) {
				return false
			}
			continue
		}
		for len(r.data) > 0 && room[r.iface] > 0 {
			if b.Full() {
				return false
			}
			s.emitRun(now, room, b, r)
		}
		if len(r.data) > 0 && len(b.Trains()) > 0 {
			return false
		}
		s.dropRun(now, r, ip.DropQueueFull)
	}
	o.forward, o.emitted = o.forward[:0], 0
	return true
}

// emitRun puts as many packets of a run into b as one train and the link's room take.
func (s *Stack) emitRun(now clock.Time, room []int, b *buffer.Batch, r *run) {
	data := r.data[:min(len(r.data), room[r.iface]*r.size)]
	took := b.AddRun(r.iface, r.hop, data, r.size)
	if r.sound {
		b.Vouch() // forwarding changes nothing that the transport's checksum is over
	}
	out := &s.interfaces[r.iface]
	bytes := min(len(data), took*r.size)
	room[r.iface] -= took
	out.tx.packets += uint64(took)
	out.tx.bytes += uint64(bytes)
	if s.tap != nil {
		for left := data[:bytes]; len(left) > 0; {
			p := left[:min(r.size, len(left))]
			s.in.one[0] = p
			s.tap(now, r.iface, Outbound, ip.DropNone, s.in.one[:])
			left = left[len(p):]
		}
	}
	r.data = r.data[bytes:]
}

// dropRun counts what is left of a run under a reason.
func (s *Stack) dropRun(now clock.Time, r *run, reason ip.DropReason) {
	for len(r.data) > 0 {
		p := r.data[:min(r.size, len(r.data))]
		s.dropOne(now, r.iface, Outbound, reason, p)
		r.data = r.data[len(p):]
	}
}
