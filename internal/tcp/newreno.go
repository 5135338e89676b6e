package tcp

// newReno is RFC 6582: fast retransmit and recovery without selective
// acknowledgments, one hole a round trip.
var newReno = strategy{name: "newreno", forward: true, detector: reno{}}

type reno struct{ simple }

// dupThresh is RFC 5681's three.
const dupThresh = 3

func (n reno) detect(v *recovery, r *round) {
	if r.dups > 0 {
		n.duplicateACK(v, r)
	}
	if r.advance > 0 {
		n.partialACK(v, r)
	}
}

// duplicateACK counts duplicates: each says that one segment has left the
// network, which lets new data out (RFC 3042 §2), and the third that the first
// is lost (RFC 5681 §3.2).
func (n reno) duplicateACK(v *recovery, r *round) {
	if v.ep.kind == restarting {
		return // echoes of what was sent before the time-out
	}
	v.ep.dupAcks += r.dups
	room := v.sent.bytes[inFlight] - v.ep.dupBytes
	gone := max(0, min(r.dups*v.snd.MSS, room))
	v.ep.dupBytes += gone
	r.dupDelivered = gone
	// RFC 6582 §3.2 step 2: duplicates of what the last recovery resent do not start another.
	if v.ep.kind == steady && v.ep.dupAcks >= dupThresh && !v.ep.mayEcho(v.snd.Una) {
		n.loseFirst(v, r)
	}
}

// loseFirst thinks the first outstanding segment lost.
func (reno) loseFirst(v *recovery, r *round) {
	id := v.sent.first
	if rec := v.sent.at(id); rec.place == inFlight {
		v.lose(r, id, rec)
		v.ep.dupBytes = min(v.ep.dupBytes, v.sent.bytes[inFlight])
		r.lost++
	}
}

// partialACK is RFC 6582 §3.2 step 3: in recovery, an acknowledgment short of
// the recovery point shows the next hole.
func (n reno) partialACK(v *recovery, r *round) {
	v.ep.dupAcks = 0
	// One segment of the advance is the retransmission, the others had left the network before.
	counted := min(v.ep.dupBytes, max(0, r.advance-v.snd.MSS))
	v.ep.dupBytes -= counted
	r.dupDelivered = -min(counted, r.delivered)
	switch {
	case v.ep.kind == steady || v.sent.empty():
		v.ep.dupBytes = 0
	case v.ep.kind == recovering && v.snd.Una < v.ep.point:
		n.loseFirst(v, r)
		v.ep.force = r.lost > 0 // at once, whatever the window says
	}
	v.ep.dupBytes = min(v.ep.dupBytes, v.sent.bytes[inFlight])
}
