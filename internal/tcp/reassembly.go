package tcp

import (
	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// reassembly is what a receiver keeps while data arrives: what is out of order and how it is
// reported, and how fast the user reads.
type reassembly struct {
	ooo     buffer.Ranges
	recent  [maxRuns]buffer.Range // what data that arrived out of order grew: the last of changes
	changes uint32
	dsack   buffer.Range // a duplicate to report (RFC 2883), empty when none
	// held is how far data out of order extends beyond what is readable: what the ring holds for
	// its sake, and no user can free by reading. A connection's is bounded by the window that it
	// offered and by MaxReceiveRanges, and all connections' together by Limits.EarlyBytes.
	held     int
	head     uint64     // of rx when the current round trip began,
	since    clock.Time // and when that was
	rttEnd   uint64     // where the window ends that is being timed
	rttSince clock.Time
}

// reports says whether SACK blocks have anything to report.
func (q *reassembly) reports() bool { return q.ooo.Len() > 0 || q.dsack.Start < q.dsack.End }

// wake gives the receiver of an idle connection its reassembly.
func (r *receiver) wake() {
	r.reassembly = r.shared.spare.take()
	r.reassembly.head, r.reassembly.ooo.Max = r.rx.Head(), r.shared.cfg.Limits.MaxReceiveRanges
}

// rest gives it back.
func (r *receiver) rest() {
	if q := r.reassembly; q != nil {
		*q, r.reassembly = reassembly{}, nil
		r.shared.spare.put(q)
	}
}

// reach is how far data out of order extends beyond what is readable.
func (r *receiver) reach() int {
	n := r.reassembly.ooo.Len()
	if n == 0 {
		return 0
	}
	return int(r.reassembly.ooo.At(n-1).End - r.offset(r.nxt))
}

// mayHold reports whether the host has memory for data out of order up to an offset. It drops data
// that it has no memory for. The sender repeats that data: by then it may be the next that is due,
// which is always taken.
func (r *receiver) mayHold(to uint64) bool {
	more := int(to-r.offset(r.nxt)) - r.reassembly.held
	return more <= 0 || r.shared.held+more <= r.shared.cfg.Limits.EarlyBytes
}

// countHeld keeps the counts after data out of order has changed.
func (r *receiver) countHeld() {
	n := r.reach()
	r.shared.held += n - r.reassembly.held
	r.reassembly.held = n
}

// maxRuns bounds how much of what arrives out of order together is reported. That may be many
// runs with gaps in between, each a range; an acknowledgment has room for three, and what no block
// tells of is sent again. So each run has an acknowledgment, as if it had come by itself, and the
// last has two. They report the runs before it too, so that each is reported twice or three times,
// and none later than one that came after it: the peer would take it for lost (RFC 8985 §6.2).
const maxRuns = 48

// sackBlocks adds to an acknowledgment what was received out of order, if the peer has permitted
// that: first the duplicate if there is one (RFC 2883 §4), then the range that changed last and the
// other recent ones (RFC 2018 §4), then the lowest. One that others follow reports what is recent
// as it was when the first of that arrived. Room is what the path leaves for options and payload:
// an acknowledgment must fit it too.
func (r *receiver) sackBlocks(o *Options, room int) {
	if !r.sack {
		return
	}
	most := o.maxBlocks()
	if n := (room - o.size() - 4) / 8; n < int(most) {
		most = uint8(max(n, 1))
	}
	if d := r.reassembly.dsack; d.Start < d.End {
		o.addBlock(d.Start, d.End)
		r.reassembly.dsack.End = d.Start // RFC 2883 §4: reported once
	}
	first := o.SACKCount
	add := func(b buffer.Range) {
		b = r.numbers(b)
		for _, k := range o.SACK[first:o.SACKCount] {
			start := uint32(b.Start)
			if start-k.Start < k.End-k.Start || k.Start-start < uint32(b.Len()) {
				return // of a range that has grown: only duplicates overlap (RFC 2883 §4)
			}
		}
		o.addBlock(b.Start, b.End)
	}
	fin, alone := r.finAlone()
	if alone && r.finLast {
		add(fin)
	}
	for i := r.toldLater(int(most - first)); i < r.noted() && o.SACKCount < most &&
		int(o.SACKCount-first) < r.reassembly.ooo.Len(); i++ {
		if b, ok := r.change(i); ok {
			add(b)
		}
	}
	for i := 0; i < r.reassembly.ooo.Len() && o.SACKCount < most; i++ {
		add(r.reassembly.ooo.At(i))
	}
	if alone && o.SACKCount < most {
		add(fin)
	}
}

// numbers turns a range of offsets into sequence numbers. RFC 2018 §3: a FIN behind it has its
// number, and is held as well.
func (r *receiver) numbers(b buffer.Range) buffer.Range {
	base := r.irs + 1
	b.Start += base
	if b.End += base; b.End == r.fin {
		b.End++
	}
	return b
}

// finAlone returns where a FIN is held whose data is missing, as an empty range in
// front of it: RFC 2018 §3 reports its number like a byte's, and the peer need not send
// it again. It is false without such a FIN, or if that ends the last range.
func (r *receiver) finAlone() (buffer.Range, bool) {
	if r.fin == 0 || r.nxt >= r.fin {
		return buffer.Range{}, false
	}
	at := r.offset(r.fin)
	n := r.reassembly.ooo.Len()
	return buffer.Range{Start: at, End: at}, n == 0 || r.reassembly.ooo.At(n-1).End < at
}

// noteRecent remembers that the range at offset pos changed last.
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

// toldLater returns how many of the latest changes the acknowledgment that leaves now does not
// report, because others follow it. There are none if it has room for all that there is.
func (r *receiver) toldLater(room int) int {
	owed := max(int(r.ack.owed), 1)
	r.runs -= uint8((int(r.runs) + owed - 1) / owed)
	if r.reassembly.ooo.Len() <= room {
		r.runs = 0
	}
	return int(r.runs)
}

// noted returns how many changes are remembered.
func (r *receiver) noted() int { return int(min(r.reassembly.changes, maxRuns)) }

// change returns the range that changed, the latest for zero: as it is now, or if acknowledgments
// are to follow, as it was then. It is false if nothing is missing in front of the range any more.
func (r *receiver) change(i int) (buffer.Range, bool) {
	q := r.reassembly
	then := q.recent[(q.changes-1-uint32(i))%maxRuns]
	b, ok := q.ooo.Find(then.End - 1)
	if ok && r.runs > 0 {
		b = buffer.Range{Start: max(b.Start, then.Start), End: then.End}
	}
	return b, ok
}

// reportDuplicate has the next acknowledgment report [start, end) as received twice (RFC 2883).
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

// reportHeld adds to the next acknowledgment a report of the first part of [start, end) that was
// already received out of order (RFC 2883 §4.2). It returns true if that part is the whole range.
func (r *receiver) reportHeld(start, end uint64) bool {
	held, ok := r.reassembly.ooo.Overlap(r.offset(start), r.offset(end))
	if !ok {
		return false
	}
	base := r.irs + 1
	r.reportDuplicate(held.Start+base, held.End+base)
	return held.Len() == end-start
}
