package tcp

// newReno is RFC 6582: fast retransmit and recovery without selective
// acknowledgments, one hole a round trip.
var newReno = strategy{name: "newreno", forward: true, detect: detectNewReno}

// dupThresh is RFC 5681's three.
const dupThresh = 3

func detectNewReno(v *recovery, r *round) {
	if r.dups > 0 {
		v.duplicateACK(r.dups, r)
	}
	if r.advance > 0 {
		v.partialACK(r)
	}
}

// duplicateACK counts duplicates: each says that one segment has left the
// network, which lets new data out (RFC 3042 §2), and the third that the first
// is lost (RFC 5681 §3.2).
func (v *recovery) duplicateACK(n int, r *round) {
	if v.kind == restarting {
		return // echoes of what was sent before the time-out
	}
	v.dupAcks += n
	room := v.sent.bytes[inFlight] - v.dupBytes
	gone := max(0, min(n*r.snd.mss, room))
	v.dupBytes += gone
	r.dupDelivered = gone
	// RFC 6582 §3.2 step 2: duplicates of what the last recovery resent do not start another.
	if v.kind == steady && v.dupAcks >= dupThresh && !v.mayEcho(r.snd.una) {
		v.loseFirst(r)
	}
}

// loseFirst thinks the first outstanding segment lost.
func (v *recovery) loseFirst(r *round) {
	id := v.sent.first
	if rec := v.sent.at(id); rec.place == inFlight {
		v.lose(r, id, rec)
		v.dupBytes = min(v.dupBytes, v.sent.bytes[inFlight])
		r.lost++
	}
}

// partialACK is RFC 6582 §3.2 step 3: in recovery, an acknowledgment short of
// the recovery point shows the next hole.
func (v *recovery) partialACK(r *round) {
	v.dupAcks = 0
	// One segment of the advance is the retransmission, the others had left the network before.
	counted := min(v.dupBytes, max(0, r.advance-r.snd.mss))
	v.dupBytes -= counted
	r.dupDelivered = -min(counted, r.delivered)
	switch {
	case v.kind == steady || v.sent.empty():
		v.dupBytes = 0
	case v.kind == recovering && r.snd.una < v.point:
		v.loseFirst(r)
		v.force = r.lost > 0 // at once, whatever the window says
	}
	v.dupBytes = min(v.dupBytes, v.sent.bytes[inFlight])
}
