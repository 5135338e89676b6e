package stack

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// flow is what was decided about a packet that was forwarded, for those that come behind it
// between the same two addresses by the same interface: what is true of its way is true of
// theirs, until a route changes, or something else that the decision rests on: then the node
// forgets all of them.
type flow struct {
	until uint64 // the routes' generation, plus one: zero is never right
	ends  uint64 // the addresses, as ip.Ends reads them
	in    int
	out   int
	hop   ip.Addr
	mtu   int
	lossy bool // loss is drawn for each packet
}

// flows are those of the packets that were forwarded last. A flow has one place, which it
// takes from another if it must.
type flows struct {
	ways [flowPlaces]flow
	met  pair // the last that a packet for the node itself was of
}

// pair is two addresses and the interface that they met at. What screen, isOurs and isPeer say
// of a packet of theirs they say of the next one, until a route changes, or what flows rest on.
type pair struct {
	until, ends uint64 // a flow's
	in          int
}

func (s *Stack) pair(i int, b []byte) pair {
	return pair{until: s.routes.Generation() + 1, ends: ip.Ends(b), in: i}
}

// flowPlaces is a power of two: that of flowBits.
const (
	flowBits   = 6
	flowPlaces = 1 << flowBits
)

func (f *flows) of(ends uint64) *flow {
	return &f.ways[ends*0x9e3779b97f4a7c15>>(64-flowBits)]
}

// run is one or more packets for others on their way out, back to back in the memory
// that the driver lent: each of size bytes but the last, which may be shorter.
type run struct {
	iface int
	hop   ip.Addr
	data  []byte
	size  int
	at    int  // bytes of its payload that have left in fragments, if it is cut
	sound bool // the frame that it came in was Checked
}

// follow forwards the packet at the front of data, n bytes that came by interface i, where one
// before it went. It is false, and nothing has happened, for a packet that may need more than
// that: one between others, to this node, with options, with an error, at its last hop.
func (s *Stack) follow(now clock.Time, i int, data []byte, n int) bool {
	if n < ip.HeaderLen {
		return false
	}
	b := data[:n]
	f := s.flows.of(ip.Ends(b))
	if f.until != s.routes.Generation()+1 || f.in != i || n > f.mtu || !ip.IsPlain(b, f.ends) {
		return false
	}
	if s.in.gathered {
		s.flushTrain(now) // order is kept between what is ours and what is not
	}
	in := &s.interfaces[f.in]
	in.rx.packets++
	in.rx.bytes += uint64(n)
	in.rx.forwarded++
	if s.tap != nil {
		s.in.one[0] = b
		s.tap(now, f.in, Inbound, ip.DropNone, s.in.one[:])
	}
	if f.lossy && s.loses(f.in, f.out) {
		s.dropOne(now, f.out, Outbound, ip.DropLossy, b)
		return true
	}
	ip.Forward(b)
	if k := len(s.out.forward); k == 0 || !s.out.forward[k-1].takes(f, b, s.in.checked) {
		s.out.forward = append(s.out.forward, run{
			iface: f.out, hop: f.hop, data: b, size: n, sound: s.in.checked,
		})
	}
	return true
}

// takes puts b, of flow f, at the run's end if it lies there and goes the same way. Only what
// a frame has together is given the capacity to be joined.
func (r *run) takes(f *flow, b []byte, sound bool) bool {
	end := len(r.data)
	if r.iface != f.out || r.hop != f.hop || r.sound != sound ||
		len(b) > r.size || end%r.size != 0 || end+len(b) > cap(r.data) {
		return false
	}
	if longer := r.data[:end+len(b)]; &longer[end] == &b[0] {
		r.data = longer
		return true
	}
	return false
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
