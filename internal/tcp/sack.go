package tcp

import "github.com/tidepool-net/tidepool/internal/buffer"

// blocks returns the ranges that the SACK blocks report, in numbers around una.
func (o *Options) blocks(una uint64, buf *[maxSACKBlocks]buffer.Range) []buffer.Range {
	for i, b := range o.SACK[:o.SACKCount] {
		start := widen(una, b.Start)
		buf[i] = buffer.Range{Start: start, End: start + uint64(b.End-b.Start)}
	}
	return buf[:o.SACKCount]
}

// takeSACK marks what the peer's SACK blocks report (RFC 2018 §5).
func (v *recovery) takeSACK(blocks []buffer.Range, ack uint64, r *round) {
	for i, b := range blocks {
		if b.Start >= b.End || b.End > v.snd.Nxt || b.Len() > 1<<31 {
			continue // not of this connection
		}
		if i == 0 && (b.End <= ack || len(blocks) > 1 &&
			blocks[1].Start <= b.Start && b.End <= blocks[1].End) {
			// RFC 2883 §4: a first block below the acknowledgment, or within the second, reports
			// a duplicate.
			r.dsack, r.dsackEnd = true, b.End
			v.lasting.counts.DSACKs++
			v.undo.reported(b.Start, b.End)
			continue
		}
		if b.Start >= v.snd.Una && b.Start >= ack {
			v.markSacked(b.Start, b.End, r)
		}
	}
}

// markSacked marks the segments wholly within [start, end). It steps over runs
// that are marked already, and remembers how far the run from its first segment
// goes: a block that grows by one segment costs two steps, however long it is.
func (v *recovery) markSacked(start, end uint64, r *round) {
	q := &v.sent
	from := q.find(start)
	id := from
	for q.has(id) {
		rec := q.at(id)
		if rec.end() > end {
			break
		}
		if rec.place == sacked {
			id += rec.skip
			continue
		}
		v.deliver(rec, r)
		q.move(id, rec, sacked)
		v.board.noteSacked(id)
		id++
	}
	if id != from {
		q.at(from).skip = id - from
	}
}
