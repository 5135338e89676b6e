package tcp

// goBackN is the textbook's sliding window: the receiver is heard for its
// cumulative acknowledgment alone, and whenever something is missing everything
// behind it is sent again. It is here to be compared with: a large window that
// loses one segment pays for all of them.
//
// What is missing shows by the time-out, or by the third duplicate
// acknowledgment as in the sender of fixed window that the course's congestion
// laboratory has, though once a window only: what was sent again draws
// duplicates too, and going back for those never ends.
var goBackN = strategy{name: "gbn", detect: detectGoBackN}

func detectGoBackN(v *recovery, r *round) {
	if r.advance > 0 {
		v.dupAcks = 0
	}
	if v.dupAcks += r.dups; v.dupAcks < dupThresh || r.dups == 0 ||
		v.kind != steady || v.mayEcho(r.snd.una) {
		return
	}
	r.snd.counts.FastRecoveries++
	v.loseFlight(r)
	r.goBack = true
}
