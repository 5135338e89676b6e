package recovery

// newReno implements fast retransmit and recovery without selective acknowledgments (RFC 6582). It
// repairs one hole per round trip.
var newReno = strategy{name: "newreno", forward: true, detector: reno{}}

type reno struct{ simple }

// DupThresh is how many duplicates indicate a loss: RFC 5681 §3.2, RFC 6675 §2.
const DupThresh = 3

func (n reno) detect(v *Recovery, r *Ack) {
	if r.Dups > 0 {
		n.duplicateACK(v, r)
	}
	if r.advance > 0 {
		n.partialACK(v, r)
	}
}

// duplicateACK counts duplicates. Each duplicate shows that a segment has left the network, and
// allows new data (RFC 3042 §2). The third shows that the first segment is lost (RFC 5681 §3.2).
func (n reno) duplicateACK(v *Recovery, r *Ack) {
	if v.Episode.kind == restarting {
		return // the duplicates answer segments from before the timeout
	}
	v.Episode.dupAcks += r.Dups
	room := v.Record.bytes[inFlight] - v.Episode.dupBytes
	gone := max(0, min(r.Dups*v.snd.MSS, room))
	v.Episode.dupBytes += gone
	r.dupDelivered = gone
	// RFC 6582 §3.2 step 2: duplicates that the last recovery's retransmissions cause do not start
	// another.
	if v.Episode.kind == steady && v.Episode.dupAcks >= DupThresh && !v.Episode.mayEcho(v.snd.Una) {
		n.loseFirst(v, r)
	}
}

func (reno) loseFirst(v *Recovery, r *Ack) {
	id := v.Record.first
	if rec := v.Record.at(id); rec.place == inFlight {
		r.lose(id, rec)
		v.Episode.dupBytes = min(v.Episode.dupBytes, v.Record.bytes[inFlight])
		r.lost++
	}
}

// partialACK handles an acknowledgment that advances SND.UNA. In recovery, an acknowledgment below
// the recovery point shows the next hole (RFC 6582 §3.2 step 3).
func (n reno) partialACK(v *Recovery, r *Ack) {
	v.Episode.dupAcks = 0
	// One segment of the advance is the retransmission. The other segments left the network before.
	counted := min(v.Episode.dupBytes, max(0, r.advance-v.snd.MSS))
	v.Episode.dupBytes -= counted
	r.dupDelivered = -min(counted, r.Delivered)
	switch {
	case v.Episode.kind == steady || v.Record.Empty():
		v.Episode.dupBytes = 0
	case v.Episode.kind == recovering && v.snd.Una < v.Episode.point:
		n.loseFirst(v, r)
		v.Episode.force = r.lost > 0 // at once, whatever the window says
	}
	v.Episode.dupBytes = min(v.Episode.dupBytes, v.Record.bytes[inFlight])
}
