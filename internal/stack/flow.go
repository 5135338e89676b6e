package stack

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// flow is what was decided about the last packet that was forwarded, for those behind
// it in the same frame: nearly always they are between the same two addresses, and
// what is true of one's way is true of theirs. Nothing that the decision rests on
// changes within a frame unless a packet changes it, and one that takes the long way,
// as all do that are for the node, ends the flow.
type flow struct {
	known bool
	ends  uint64 // the addresses, as ip.Ends reads them
	in    int
	out   int
	hop   ip.Addr
	mtu   int
	lossy bool // loss is drawn for each packet
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

// begin has the packets behind b follow it.
func (f *flow) begin(b []byte, in, out int, hop ip.Addr, mtu int, lossy bool) {
	*f = flow{
		known: true, ends: ip.Ends(b), in: in, out: out, hop: hop, mtu: mtu, lossy: lossy,
	}
}

// follow forwards the packet at the front of data, n bytes, where the one before it
// went. It is false, and nothing has happened, for a packet that may need more than
// that: one between others, to this node, with options, with an error, at its last hop.
func (s *Stack) follow(now clock.Time, data []byte, n int) bool {
	f := &s.flow
	b := data[:n]
	if !f.known || n > f.mtu || !ip.IsPlain(b, f.ends) {
		return false
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
	if k := len(s.out.forward); k == 0 || !s.out.forward[k-1].takes(b) {
		s.out.forward = append(s.out.forward, run{
			iface: f.out, hop: f.hop, data: b, size: n, sound: s.in.checked,
		})
	}
	return true
}

// takes puts b at the run's end if it lies there. Only the packets of one flow are
// given the capacity to be joined.
func (r *run) takes(b []byte) bool {
	end := len(r.data)
	if len(b) > r.size || end%r.size != 0 || end+len(b) > cap(r.data) {
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
