package tcp

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
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
	for m, n := range ecnModeNames {
		if n == name {
			return ECNMode(m), true
		}
	}
	return 0, false
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
	return asks && !k.OptionsOff && !c.has(flagNoECN) && c.stats.retries == 0
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
	if c.trouble.ecn.reduced {
		c.trouble.ecn.reduced = false
		t.Flags |= CWR
	}
}

// takeEcho is the sender's side, RFC 3168 §6.1.2: reduce as for a loss, once a
// window of data, and not in the window of a loss. That loss may not be taken back
// any more: of the congestion there is a witness.
func (c *Conn) takeEcho(now clock.Time, s *Segment) {
	if !c.echoed(s) || c.cc.Controller == nil {
		return
	}
	c.rec.undo.marked = true
	if c.rec.kind != steady || c.snd.una <= c.trouble.ecn.point {
		return
	}
	c.trouble.counts.ECNEchoes++
	c.cc.OnLoss(c.lossEvent(now, congestion.Echo, c.host.round.flight))
	if c.cc.Cwnd() <= c.snd.mss {
		// RFC 3168 §6.1.2: a window of one segment cannot be halved. What goes slower is time:
		// the retransmission timer starts anew, and only its end lets the next segment out.
		wait := c.timeout()
		c.trouble.ecn.until = in(now, wait)
		if !c.rec.sent.empty() && !c.probing() {
			c.armRTO(now)
		}
	}
	c.sample(now)
}

// echoed reports whether a segment says that one of ours was marked.
func (c *Conn) echoed(s *Segment) bool {
	return c.has(flagECN) && s.Flags.Has(ECE) && !s.Flags.Has(SYN)
}

// heldByEcho reports whether an echo holds back what is new, and sees to it that
// it leaves in time.
func (c *Conn) heldByEcho(now clock.Time) bool {
	if c.trouble.ecn.until == clock.Never {
		return false
	}
	if c.trouble.ecn.until <= now {
		c.trouble.ecn.until = clock.Never
		return false
	}
	c.limitBy(now, LimitCwnd)
	c.timers[timerPace] = c.trouble.ecn.until
	return true
}

// note is called for every reduction of the window, whatever the
// reason: the peer is told of all (RFC 3168 §6.1.2).
func (e *ecn) note(agreed bool, nxt uint64) { e.reduced, e.point = agreed, nxt }

// withdraw makes a reduction that is taken back one that never was: RFC
// 3168 §6.1.2 has CWR say that the window was reduced, so it is not said of this
// one, unless one before it is still to be told; and the next echo counts.
func (e *ecn) withdraw(u *undo) { e.reduced, e.point = e.reduced && u.reduced, u.point }
