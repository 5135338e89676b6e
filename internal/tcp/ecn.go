package tcp

import (
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// ECN is the codepoint in the IP header that a segment travels under (RFC 3168
// §5).
type ECN uint8

// The codepoints.
const (
	// NotECT: a congested router must drop it.
	NotECT ECN = iota
	// ECT1 and ECT0: it may be marked instead; ECT0 is what we send.
	ECT1
	ECT0
	// CE: a router marked it.
	CE
)

// ECNMode says whether connections use explicit congestion notification.
type ECNMode uint8

// The modes.
const (
	// ECNPassive accepts it when the peer asks, and never asks.
	ECNPassive ECNMode = iota
	// ECNOn asks too.
	ECNOn
	// ECNOff does neither.
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

// ecn is the sender's side of RFC 3168 §6.1.2. It means nothing without flagECN.
type ecn struct {
	reduced bool       // the window was reduced: the next new data carries CWR
	point   uint64     // snd.nxt then; until it is passed no echo counts again
	until   clock.Time // nothing new is sent before, when the window is one segment
}

// asksECN reports whether our SYN asks for ECN: RFC 3168 §6.1.1.1, no more once
// one has found no answer or a reset, for some middleboxes take it for an attack.
func (c *Conn) asksECN() bool {
	k := &c.host.cfg.Knobs
	asks := k.ECN == ECNOn || k.ECN == ECNDCTCP
	return asks && !k.OptionsOff && !c.has(flagNoECN) && c.rec.retries == 0
}

// synFlags returns the ECN flags of our SYN or SYN-ACK (RFC 3168 §6.1.1).
func (c *Conn) synFlags() Flags {
	switch {
	case c.state != StateSynSent && c.has(flagECN):
		return ECE
	case c.state != StateSynSent:
		return 0
	case c.asksECN():
		c.flags |= flagAskedECN
		return ECE | CWR
	}
	// Whoever has sent a SYN without them must mark nothing as capable, though the first SYN be
	// the one that is answered.
	c.flags |= flagNoECT
	return 0
}

// negotiateECN settles it from the peer's SYN or SYN-ACK (RFC 3168 §6.1.1).
// Both flags on a SYN-ACK are a reflection by somebody who knows neither.
func (c *Conn) negotiateECN(s *Segment) {
	k, want := &c.host.cfg.Knobs, ECE|CWR
	agreed := k.ECN != ECNOff && !k.OptionsOff
	if s.Flags.Has(ACK) {
		want, agreed = ECE, agreed && c.has(flagAskedECN)
	}
	if agreed && s.Flags&(ECE|CWR) == want {
		c.flags |= flagECN
		if k.ECN == ECNDCTCP {
			c.flags |= flagDCTCP
		}
	}
}

// repeatedSYN notes that the peer has sent its SYN again without asking for ECN:
// then the first one's answer may have been what was lost.
func (c *Conn) repeatedSYN(s *Segment) {
	if s.Flags&(ECE|CWR) != ECE|CWR {
		c.flags &^= flagECN
	}
}

// retryWithoutECN sends the SYN again when what asked for ECN was reset (RFC
// 3168 §6.1.1.1). It reports false when ECN cannot have been the reason.
func (c *Conn) retryWithoutECN(now clock.Time) bool {
	if !c.has(flagAskedECN) || c.has(flagNoECN) {
		return false
	}
	c.flags |= flagNoECN
	c.sendSYN(now)
	return true
}

// markNew gives a train of new data its codepoint, and CWR when the window was
// reduced since the last one (RFC 3168 §6.1.2). Nothing else is
// ECN-capable: not bare ACKs (RFC 3168 §6.1.4), retransmissions (RFC 3168
// §6.1.5) or window probes (RFC 3168 §6.1.6).
func (c *Conn) markNew(t *Train) {
	if t.Len == 0 || !c.has(flagECN) {
		return
	}
	if !c.has(flagNoECT) {
		t.ECN = ECT0
	}
	if c.rec.lasting.ecn.reduced {
		c.rec.lasting.ecn.reduced = false
		t.Flags |= CWR
	}
}

// echoed reports whether a segment says that one of ours was marked.
func (c *Conn) echoed(s *Segment) bool {
	return c.has(flagECN) && s.Flags.Has(ECE) && !s.Flags.Has(SYN)
}

// holds returns until when an echo holds back what is new; never: it does not.
func (e *ecn) holds(now clock.Time) clock.Time {
	if e.until <= now {
		e.until = clock.Never
	}
	return e.until
}
