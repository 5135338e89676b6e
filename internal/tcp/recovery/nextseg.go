package recovery

// selective is RFC 6675: SACK blocks show the holes, and the count of sacked segments above a hole
// shows that it is a loss. Only a timeout shows that a retransmission was lost too. Pipe counts a
// segment once, by its last transmission.
var selective = strategy{
	name: "sack", sack: true, forward: true, detector: counting{},
}

type counting struct{ simple }

// scoreboard is the state that RFC 6675 needs in addition to the sent queue.
type scoreboard struct {
	judged  uint32 // every record before this one has been judged
	above   int    // segments sacked from there on
	highest uint32 // behind the highest record that was sacked
	tried   uint32 // records before this one are no more to spare
	rescued bool   // this recovery has had its rescue (RescueRxt)
}

// noteSacked counts a newly sacked record.
func (b *scoreboard) noteSacked(id uint32) {
	if int32(id-b.judged) >= 0 {
		b.above++
	}
	if int32(id+1-b.highest) > 0 {
		b.highest = id + 1
	}
}

// follow removes cumulatively acknowledged segments from the board.
func (b *scoreboard) follow(q *sentQueue) {
	if int32(q.first-b.judged) > 0 {
		b.judged, b.above = q.first, q.count[sacked]
	}
	if int32(q.first-b.highest) > 0 {
		b.highest = q.first
	}
	if int32(q.first-b.tried) > 0 {
		b.tried = q.first
	}
}

// detect is IsLost, RFC 6675 §4: a segment with DupThresh sacked segments above it is lost. With
// full segments that implies the RFC's (DupThresh - 1) * SMSS bytes. It judges each record once, in
// order.
func (counting) detect(v *Recovery, r *Ack) {
	q, b := &v.Record, &v.board
	b.follow(q)
	for b.above >= DupThresh && b.judged != q.next {
		rec := q.at(b.judged)
		switch rec.place {
		case sacked:
			if b.above == DupThresh {
				return // too few beyond this one
			}
			b.above--
		case inFlight:
			if rec.flags&recAgain == 0 {
				r.lose(b.judged, rec)
				r.lost++
			}
		default: // known already
		}
		b.judged++
	}
}

// spare is rules 3 and 4 of NextSeg, RFC 6675 §4: first a possible hole with too little sacked
// above it, then, once in a recovery, the end of the flight, whose loss nothing would report. The
// RFC's highest segment that is not sacked may be one that recovery has just retransmitted.
func (counting) spare(v *Recovery) (uint32, bool) {
	q, b := &v.Record, &v.board
	b.follow(q)
	if int32(b.judged-b.tried) > 0 {
		b.tried = b.judged
	}
	for ; int32(b.highest-b.tried) > 0; b.tried++ {
		if rec := q.at(b.tried); rec.place == inFlight && rec.flags&recAgain == 0 {
			return b.tried, true
		}
	}
	if last := q.next - 1; !b.rescued && !q.Empty() && q.at(last).place == inFlight {
		b.rescued = true
		return last, true
	}
	return 0, false
}
