package tcp

import "github.com/tidepool-net/tidepool/internal/buffer"

// reports returns true if an acknowledgment needs SACK blocks.
func (q *reassembly) reports() bool { return q.ooo.Len() > 0 || q.dsack.Start < q.dsack.End }

// maxRuns bounds how many changes the receiver reports for data that arrives together. Such data
// may form many runs with gaps between them, but an acknowledgment has room for only three SACK
// blocks, and the peer retransmits data that no block reports. So the receiver sends an
// acknowledgment for each run, and two for the last. Each also reports the runs before it, so that
// every run is reported two or three times, and in order. The peer would treat a run that is
// reported late as lost (RFC 8985 §6.2).
const maxRuns = 48

// sackBlocks adds SACK blocks to an acknowledgment in this order: the duplicate, if any (RFC 2883
// §4), the ranges that changed last (RFC 2018 §4), and the lowest of the other ranges. If more
// acknowledgments are due, a changed range is reported as it was right after its change, without
// later growth. room is the path's payload size, which bounds the options.
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
				return // part of a range that has grown: only duplicates overlap (RFC 2883 §4)
			}
		}
		o.addBlock(b.Start, b.End)
	}
	fin, alone := r.finAlone()
	if alone && r.finLast {
		add(fin)
	}
	for i := r.deferred(int(most - first)); i < r.noted() && o.SACKCount < most &&
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

// numbers converts a range of offsets to sequence numbers. RFC 2018 §3: a FIN right after the range
// extends it.
func (r *receiver) numbers(b buffer.Range) buffer.Range {
	base := r.irs + 1
	b.Start += base
	if b.End += base; b.End == r.fin {
		b.End++
	}
	return b
}

// finAlone returns the position of a FIN that waits for missing data, as an empty range, because
// SACK reports a FIN like a byte (RFC 2018 §3). It reports false if there is no such FIN, or if the
// FIN follows the last range.
func (r *receiver) finAlone() (buffer.Range, bool) {
	if r.fin == 0 || r.nxt >= r.fin {
		return buffer.Range{}, false
	}
	at := r.offset(r.fin)
	n := r.reassembly.ooo.Len()
	return buffer.Range{Start: at, End: at}, n == 0 || r.reassembly.ooo.At(n-1).End < at
}

// deferred returns how many of the latest changes the current acknowledgment leaves to later ones:
// none if it has room for all ranges.
func (r *receiver) deferred(room int) int {
	owed := max(int(r.ack.owed), 1)
	r.runs -= uint8((int(r.runs) + owed - 1) / owed)
	if r.reassembly.ooo.Len() <= room {
		r.runs = 0
	}
	return int(r.runs)
}

func (r *receiver) noted() int { return int(min(r.reassembly.changes, maxRuns)) }

// change returns the range of the i-th latest change: as it is now or, if more acknowledgments
// follow, as it was then. It reports false if no data before the range is missing any more.
func (r *receiver) change(i int) (buffer.Range, bool) {
	q := r.reassembly
	then := q.recent[(q.changes-1-uint32(i))%maxRuns]
	b, ok := q.ooo.Find(then.End - 1)
	if ok && r.runs > 0 {
		b = buffer.Range{Start: max(b.Start, then.Start), End: then.End}
	}
	return b, ok
}
