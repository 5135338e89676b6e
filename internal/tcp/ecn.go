package tcp

import "slices"

// ECN is the codepoint in the IP header that a segment travels under (RFC 3168
// §5).
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
	// ECNDCTCP asks too, and reports marks as DCTCP does: RFC 8257 §3.2, where each
	// acknowledgment says whether what it acknowledges arrived marked. Nothing negotiates that:
	// both ends must have this mode.
	ECNDCTCP
	numECNModes
)

var ecnModeNames = [numECNModes]string{"passive", "on", "off", "dctcp"}

// String returns the mode's name.
func (m ECNMode) String() string {
	if m < numECNModes {
		return ecnModeNames[m]
	}
	return "?"
}

// ParseECNMode returns the mode of that name.
func ParseECNMode(name string) (ECNMode, bool) {
	m := slices.Index(ecnModeNames[:], name)
	return ECNMode(max(m, 0)), m >= 0
}

// takeMark is the receiver's side of RFC 3168 §6.1.3: CE is echoed on every ACK until CWR says
// that the sender has heard. CWR on a marked segment answers an earlier mark.
func (r *receiver) takeMark(s *Segment) {
	if s.Flags.Has(CWR) {
		r.echo = false
	}
	if s.ECN == CE {
		r.echo = true
		r.marks += uint64(max(s.Count, 1))
		r.ack.quick = max(r.ack.quick, 2) // the sender should hear of it soon
	}
}

// takeMarkDCTCP is the receiver's side of DCTCP, RFC 8257 §3.2: the echo is the mark of the newest
// segment with data, and a change of it is acknowledged at once. That acknowledgment has the new
// mark, even if it also covers a segment with the old mark, whose acknowledgment was delayed.
func (r *receiver) takeMarkDCTCP(s *Segment) {
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

// mark gives a train of new data its codepoint, and CWR when the window was reduced since the last
// one (RFC 3168 §6.1.2). Nothing else is ECN-capable: not bare ACKs (RFC
// 3168 §6.1.4), retransmissions (RFC 3168 §6.1.5) or window probes (RFC 3168 §6.1.6).
func (d *sender) mark(t *Train, capable bool) {
	if capable {
		t.ECN = ECT0
	}
	if d.rec.Kept.ECN.TakeCWR() {
		t.Flags |= CWR
	}
}
