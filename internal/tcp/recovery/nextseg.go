package recovery

// selective implements RFC 6675: SACK blocks show the holes, and the count of sacked segments above
// a hole shows that it is a loss. Only a timeout shows that a retransmission was lost too. Pipe
// counts a segment once, by its last transmission.
var selective = strategy{
	name: "sack", sack: true, forward: true, detector: counting{},
}

type counting struct{ simple }

// scoreboard is the state that RFC 6675 needs in addition to the sent queue.
type scoreboard struct {
	judged  uint32 // detect has judged every record before this one
	above   int    // sacked segments from judged on
	highest uint32 // the record after the highest sacked one
	tried   uint32 // spare has tried every record before this one
	rescued bool   // this recovery has retransmitted the end of the flight (RescueRxt)
}

func (b *scoreboard) noteSacked(id uint32) {
	if int32(id-b.judged) >= 0 {
		b.above++
	}
	if int32(id+1-b.highest) > 0 {
		b.highest = id + 1
	}
}

// follow removes cumulatively acknowledged segments from the scoreboard.
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

// detect marks a segment as lost if DupThresh segments above it are sacked (IsLost, RFC 6675 §4).
// With full segments that implies the RFC's (DupThresh - 1) * SMSS bytes. detect judges each record
// once, in order.
func (counting) detect(v *Recovery, r *Ack) {
	q, b := &v.Record, &v.board
	b.follow(q)
	for b.above >= DupThresh && b.judged != q.next {
		rec := q.at(b.judged)
		switch rec.place {
		case sacked:
			if b.above == DupThresh {
				return // too few sacked segments above this one
			}
			b.above--
		case inFlight:
			if rec.flags&recRetransmitted == 0 {
				r.lose(b.judged, rec)
				r.lost++
			}
		default: // the record is already marked as lost
		}
		b.judged++
	}
}

// spare returns a segment by rules 3 and 4 of NextSeg (RFC 6675 §4). The first choice is a possible
// hole with too few sacked segments above it. The second choice, once in a recovery, is the end of
// the flight, because nothing would report its loss. The RFC instead takes the highest segment that
// is not sacked, which recovery may just have retransmitted.
func (counting) spare(v *Recovery) (uint32, bool) {
	q, b := &v.Record, &v.board
	b.follow(q)
	if int32(b.judged-b.tried) > 0 {
		b.tried = b.judged
	}
	for ; int32(b.highest-b.tried) > 0; b.tried++ {
		if rec := q.at(b.tried); rec.place == inFlight && rec.flags&recRetransmitted == 0 {
			return b.tried, true
		}
	}
	if last := q.next - 1; !b.rescued && !q.Empty() && q.at(last).place == inFlight {
		b.rescued = true
		return last, true
	}
	return 0, false
}
