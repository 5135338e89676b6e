package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// receiver is the receiving half of a connection: the receive sequence space (RFC 9293 §3.3.1,
// figure 4) and the data that the application has not read yet. It does not refer to the
// connection.
type receiver struct {
	shared     *receivers
	rx         *buffer.Ring
	irs, nxt   uint64
	edge       uint64 // right edge of the advertised window
	fin        uint64 // sequence number of the peer's FIN; zero: none has arrived
	up         uint64 // the end of urgent data (RCV.UP)
	mss        int    // the largest segment that the peer has sent
	ack        delayedAck
	tune       autotuning
	reassembly *reassembly // nil while the connection is idle
	ackLimits  *ackLimits  // nil: not needed yet
	bytes      uint64      // bytes received in order
	early      uint64      // segments that arrived out of order
	marks      uint64      // segments that arrived with CE
	lastDataAt clock.Time  // when the last segment with data arrived
	scale      uint8
	runs       uint8 // number of entries of reassembly.recent that no ACK has reported yet
	sack       bool  // both ends permit SACK
	echo       bool  // CE arrived without a later CWR: every ACK echoes it
	closed     bool  // the user will not read any more
	finLast    bool  // the last arrival out of order was a FIN; data before it is missing
}

// reassembly is the receiver's state while data arrives: the out-of-order data, the part of it that
// ACKs must report, and the rate at which the user reads.
type reassembly struct {
	ooo     buffer.Ranges
	recent  [maxRuns]buffer.Range // ranges that changed last, in a ring
	changes uint32                // number of changes so far
	dsack   buffer.Range          // duplicate data to report (RFC 2883); may be empty
	// held is how far out-of-order data extends beyond the readable data, in bytes. The user cannot
	// free this memory by reading. The offered window and MaxReceiveRanges bound it for one
	// connection, Limits.EarlyBytes for all.
	held     int
	head     uint64     // Head of rx when the current round trip began
	since    clock.Time // when the current round trip began
	rttEnd   uint64     // end of the window that timeWindow measures
	rttSince clock.Time
}

// receivers is the state that the receivers of a host share.
type receivers struct {
	cfg        *Config
	drops      *Drops
	challenges challenges
	held       int           // out-of-order bytes of all connections
	spare      []*reassembly // for reuse, at most maxSpare
}

// begin sets the peer's initial sequence number. The window keeps the size that our SYN advertised.
func (r *receiver) begin(irs uint32) {
	offered := r.edge - r.nxt
	r.irs = wide(irs)
	r.nxt = r.irs + 1
	r.edge = r.nxt + offered
}

func (r *receiver) offset(seq uint64) uint64 { return seq - r.irs - 1 }

// done reports whether the peer's FIN and all data before it have arrived.
func (r *receiver) done() bool { return r.fin != 0 && r.nxt > r.fin }

func (r *receiver) drop(d Drop) { r.shared.drops[d]++ }

// acceptable reports whether any part of the segment is within the window (RFC 9293 §3.10.7.4,
// first step).
func (r *receiver) acceptable(s *Segment, seq uint64) bool {
	switch {
	case s.Len == 0:
		// The right edge is acceptable too: a peer that has filled the window sends its ACKs there.
		return seq >= r.nxt && seq <= r.offeredEdge()
	case seq < r.offeredEdge() && seq+s.segLen() > r.nxt:
		return true
	case seq == r.nxt:
		// This is a window probe. text does not accept its data but acknowledges it, and the ACK
		// field is valid.
		return true
	}
	return false
}

// offeredEdge returns the right edge as the peer may have understood it: edge, rounded up to a unit
// of the window scale.
func (r *receiver) offeredEdge() uint64 { return r.edge + 1<<r.scale - 1 }

// urgent processes the urgent pointer (sixth step), and reports whether it has advanced. Urgent
// data is part of the stream (RFC 9293 §3.8.5), and the pointer says where that data ends. This
// host never sends urgent data (SHLD-13).
func (r *receiver) urgent(s *Segment) bool {
	// MUST-62: the pointer is the number of the octet after the urgent data. §3.10.7.4 notifies the
	// user while the pointer is ahead of the data that the user has read.
	up := widen(r.nxt, s.Seq) + uint64(s.Urgent)
	if up <= r.up || streamed(up, r.irs) <= r.rx.Head() {
		return false
	}
	r.up = up
	return true // MUST-32: notify the user whenever the pointer advances
}

// text copies the payload into rx, in order or not (seventh step), and reports whether the user can
// read more.
func (r *receiver) text(now clock.Time, s *Segment, seq uint64) (readable bool) {
	start, end := seq, seq+uint64(s.Len)
	if start < r.nxt {
		start = min(r.nxt, end)
		r.reportDuplicate(seq, start)
	}
	limit := r.offeredEdge()
	if !r.closed {
		// The advertised window is rounded up, but place must not write beyond the buffer.
		limit = min(limit, r.nxt+uint64(r.rx.Free()))
	}
	if r.fin != 0 {
		limit = min(limit, r.fin) // nothing comes after a FIN
	}
	if end > limit {
		r.drop(DropWindow)
		end = limit
	}
	if start >= end {
		r.ack.atOnce()
		return false
	}
	r.mss = min(max(r.mss, s.Len/s.Count), maxMSS)
	if start > r.nxt {
		r.takeOutOfOrder(s, seq, start, end)
		return false
	}
	r.acceptInOrder(now, s, seq, start, end)
	return !r.closed
}

// acceptInOrder makes [start, end) readable, and the out-of-order data that directly follows.
func (r *receiver) acceptInOrder(now clock.Time, s *Segment, seq, start, end uint64) {
	r.place(s, seq, start, end)
	r.nxt = end
	r.edge = max(r.edge, end)
	filled := r.reassembly.ooo.Len() > 0
	if filled {
		if seq == start { // otherwise text has reported the part below RCV.NXT
			r.reportHeld(start, end)
		}
		r.reassembly.ooo.RemoveBefore(r.offset(end))
		if r.reassembly.ooo.Len() > 0 {
			if first := r.reassembly.ooo.At(0); first.Start == r.offset(end) {
				r.nxt = end + first.Len()
				r.edge = max(r.edge, r.nxt)
				r.reassembly.ooo.RemoveBefore(first.End)
			}
		}
	}
	r.bytes += r.nxt - start
	r.timeWindow(now)
	if !r.closed {
		r.rx.Commit(r.offset(r.nxt))
	}
	if filled {
		r.ack.quicken() // RFC 5681 §4.2: acknowledge a segment that fills a gap at once
		r.countHeld()
	}
	r.ackInOrder(now, s, int(end-start))
	if start > seq {
		r.ack.atOnce() // report a duplicate at once
	}
}

// timeWindow measures the round trip at the receiver: the time in which the peer fills a window is
// at least a round trip.
func (r *receiver) timeWindow(now clock.Time) {
	if r.nxt < r.reassembly.rttEnd {
		return
	}
	if r.reassembly.rttSince != clock.Never {
		if d := now.Sub(r.reassembly.rttSince); r.tune.rtt == 0 || d < r.tune.rtt {
			r.tune.rtt = d
		}
	}
	r.reassembly.rttSince, r.reassembly.rttEnd = now, r.edge
}

func (r *receiver) takeOutOfOrder(s *Segment, seq, start, end uint64) {
	from, to := r.offset(start), r.offset(end)
	r.early += uint64(s.Count)
	if r.reportHeld(start, end) {
		r.drop(DropDuplicate)
	} else if !r.mayHold(to) {
		r.drop(DropMemory)
	} else if !r.reassembly.ooo.Add(from, to) {
		r.drop(DropRanges) // too many gaps: memory is bounded
	} else {
		r.place(s, seq, start, end)
		r.countHeld()
	}
	r.noteRecent(from)
	r.ack.quicken()
	r.ackOutOfOrder(s)
}

// mayHold reports whether the host has memory for out-of-order data up to an offset. Otherwise the
// receiver drops the data, and the peer retransmits it.
func (r *receiver) mayHold(to uint64) bool {
	more := int(to-r.offset(r.nxt)) - r.reassembly.held
	return more <= 0 || r.shared.held+more <= r.shared.cfg.Limits.EarlyBytes
}

// noteRecent records that the range that contains pos has changed last.
func (r *receiver) noteRecent(pos uint64) {
	q := r.reassembly
	b, ok := q.ooo.Find(pos)
	if !ok {
		return
	}
	r.finLast = false
	if last := q.recent[(q.changes-1)%maxRuns]; last.Start < b.Start || last.Start >= b.End {
		q.changes++
		r.runs = min(r.runs+1, maxRuns)
	}
	r.runs = max(r.runs, 1)
	q.recent[(q.changes-1)%maxRuns] = b
}

// place copies the part [start, end) of a segment that begins at seq into rx.
func (r *receiver) place(s *Segment, seq, start, end uint64) {
	if r.closed {
		return
	}
	at := seq
	for _, p := range s.Payload {
		next := at + uint64(len(p))
		lo, hi := max(at, start), min(next, end)
		if lo < hi {
			r.rx.WriteAt(r.offset(lo), p[lo-at:hi-at])
		}
		at = next
	}
}

// countHeld updates the memory counts after the out-of-order data has changed.
func (r *receiver) countHeld() {
	n := r.reach()
	r.shared.held += n - r.reassembly.held
	r.reassembly.held = n
}

// reach returns how far out-of-order data extends beyond the readable data.
func (r *receiver) reach() int {
	n := r.reassembly.ooo.Len()
	if n == 0 {
		return 0
	}
	return int(r.reassembly.ooo.At(n-1).End - r.offset(r.nxt))
}

// reportHeld finds the first part of [start, end) that the receiver already holds, and reports it
// as a duplicate (RFC 2883 §4.2). It returns true if that part is the whole range.
func (r *receiver) reportHeld(start, end uint64) bool {
	held, ok := r.reassembly.ooo.Overlap(r.offset(start), r.offset(end))
	if !ok {
		return false
	}
	base := r.irs + 1
	r.reportDuplicate(held.Start+base, held.End+base)
	return held.Len() == end-start
}

// reportDuplicate makes the next acknowledgment report [start, end) as a duplicate (RFC 2883).
func (r *receiver) reportDuplicate(start, end uint64) {
	d := &r.reassembly.dsack
	switch {
	case !r.sack || start >= end:
	case d.Start < d.End && start <= d.End && end > d.End && start >= d.Start:
		d.End = end // RFC 2883 §4 (3): one report covers one contiguous duplicate
	default:
		*d = buffer.Range{Start: start, End: end}
	}
}

// holdFIN stores a FIN until all data before it has arrived. It acknowledges a FIN without data at
// once (RFC 5681 §4.2), and reports whether such a FIN is a retransmission. It ignores a FIN beyond
// the window.
func (r *receiver) holdFIN(fin uint64, bare bool) (repeated bool) {
	fresh := r.fin == 0 && fin >= r.nxt && fin <= r.offeredEdge()
	if fresh {
		r.fin = fin
	}
	switch {
	case !bare || r.nxt >= r.fin:
		return false
	case !fresh:
		if fin == r.fin {
			r.reportDuplicate(fin, fin+1)
		}
		return true
	}
	r.finLast = true
	r.ack.quicken()
	r.ack.atOnce()
	return false
}

// acceptFIN advances RCV.NXT over the FIN, once all data before it has arrived (eighth step).
func (r *receiver) acceptFIN() {
	r.nxt++
	r.edge = max(r.edge, r.nxt)
	r.forget()
	r.ack.atOnce()
}

func (r *receiver) forget() {
	r.reassembly.ooo.Clear()
	r.countHeld()
}
