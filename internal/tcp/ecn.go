package tcp

import "slices"

// ECN is the ECN codepoint in the IP header of a segment (RFC 3168 §5).
type ECN uint8

// The codepoints.
const (
	// NotECT means that a congested router must drop the packet.
	NotECT ECN = iota
	// ECT1 and ECT0 mean that a router may mark the packet instead. We send ECT0.
	ECT1
	ECT0
	// CE means that a router has marked the packet.
	CE
)

// ECNMode says whether connections use explicit congestion notification.
type ECNMode uint8

// The modes.
const (
	// ECNPassive uses ECN when the peer requests it, and never requests it.
	ECNPassive ECNMode = iota
	// ECNOn also requests ECN.
	ECNOn
	// ECNOff neither uses nor requests ECN.
	ECNOff
	// ECNDCTCP also requests ECN, and reports marks as DCTCP does (RFC 8257 §3.2): each
	// acknowledgment says whether the data that it acknowledges arrived marked. TCP does not
	// negotiate this, so both ends must have this mode.
	ECNDCTCP
	numECNModes
)

var ecnModeNames = [numECNModes]string{"passive", "on", "off", "dctcp"}

// String returns the mode's name.
func (m ECNMode) String() string { return nameOf(ecnModeNames[:], m) }

// ParseECNMode returns the mode of that name.
func ParseECNMode(name string) (ECNMode, bool) {
	m := slices.Index(ecnModeNames[:], name)
	return ECNMode(max(m, 0)), m >= 0
}

// handleMark processes a mark as a receiver of RFC 3168 §6.1.3 does: every ACK echoes CE until CWR
// shows that the sender has responded. CWR on a segment with CE responds to an earlier mark.
func (r *receiver) handleMark(s *Segment) {
	if s.Flags.Has(CWR) {
		r.echo = false
	}
	if s.ECN == CE {
		r.echo = true
		r.marks += uint64(max(s.Count, 1))
		r.ack.quick = max(r.ack.quick, 2) // so that the echo is not delayed
	}
}

// handleMarkDCTCP processes a mark as a DCTCP receiver does (RFC 8257 §3.2). The echo is the mark
// of the newest segment with data, and the receiver acknowledges a change of it at once. That
// acknowledgment has the new mark, even if it also covers a segment with the old mark, whose
// acknowledgment was delayed.
func (r *receiver) handleMarkDCTCP(s *Segment) {
	if s.Len == 0 {
		return
	}
	marked := s.ECN == CE
	if marked {
		r.marks += uint64(max(s.Count, 1))
	}
	if marked != r.echo {
		r.echo = marked
		r.ack.atOnce()
	}
}

// mark sets the codepoint of a train of new data, and sets CWR if the window was reduced since the
// last train (RFC 3168 §6.1.2). Nothing else is ECN-capable: not bare ACKs (RFC 3168 §6.1.4),
// retransmissions (RFC 3168 §6.1.5) or window probes (RFC 3168 §6.1.6).
func (d *sender) mark(t *Train, capable bool) {
	if capable {
		t.ECN = ECT0
	}
	if d.rec.Kept.ECN.TakeCWR() {
		t.Flags |= CWR
	}
}
