package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// budget is an allowance of challenge ACKs, RFC 5961 §7: what an attacker can
// make us send is bounded, whatever it sends.
type budget struct {
	left     int
	refilled clock.Time
}

// answers are to segments that deserve few: that are off the window, or may be forged. Few
// connections have ever given one.
type answers struct {
	oowAt clock.Time // when an empty segment off the window was last answered
	// challenges is how many more ACKs segments that may be forged draw (RFC 5961 §7).
	challenges budget
}

// answered returns the connection's answers.
func (c *Conn) answered() *answers {
	if c.answers == nil {
		c.answers = new(answers)
	}
	return c.answers
}

// A connection's own budget is the one that RFC 5961 §7 suggests.
const (
	connChallenges    = 10
	connChallengeTime = 5 * time.Second
)

func (b *budget) stale(now clock.Time, every time.Duration) bool {
	return b.refilled == clock.Never || now.Sub(b.refilled) >= every
}

// challenges are the challenge ACKs of a host.
type challenges struct {
	cfg          *Config
	all          budget // of this second
	sent, spared uint64
}

// spend takes one from a connection's budget and the host's, or from neither.
func (h *challenges) spend(now clock.Time, own *budget) bool {
	if own.stale(now, connChallengeTime) {
		*own = budget{connChallenges, now}
	}
	if h.all.stale(now, time.Second) {
		h.all = budget{h.allowance(now), now}
	}
	if own.left == 0 || h.all.left == 0 {
		h.spared++
		return false
	}
	own.left--
	h.all.left--
	h.sent++
	return true
}

// allowance is the host's budget for the second that begins: the configured one on the average. All
// connections share it. If it were known, an off-path attacker could count what is left of it and
// learn how many challenge ACKs the segments of others draw (CVE-2016-5696).
func (h *challenges) allowance(now clock.Time) int {
	n := h.cfg.Limits.ChallengeAcks
	random := keyedAt(&h.cfg.Secret, 'b', Tuple{}, uint32(uint64(now)/uint64(time.Second)))
	return max(1, n/2+int(random%uint64(n)))
}

// challengeACK answers a segment that is wrong but may be an honest mistake, such as the first SYN
// of a peer that lost its memory (RFC 5961 §3.2, §4.2, §5.2).
func (c *Conn) challengeACK(now clock.Time) {
	if c.host.challenges.spend(now, &c.answered().challenges) {
		c.rcv.ack.now()
	}
}

// offWindowACK answers an empty segment that is outside the window: a probe, a keepalive, or a FIN
// that we have had. RFC 9293 §3.10.7.4 wants an ACK, but two ends that disagree about where they
// are would answer each other's answers for ever, and nodes of the family repeat a FIN thousands of
// times; so an interval must pass between two. Whoever retransmits by a timer of RTOMin or more
// gets an answer every time.
func (c *Conn) offWindowACK(now clock.Time) {
	if c.mayRepeat(now) {
		c.rcv.ack.now()
	}
}

// mayRepeat reports whether the interval has passed, and begins another.
func (c *Conn) mayRepeat(now clock.Time) bool {
	last, pause := c.answered().oowAt, c.host.cfg.Recovery.RTOMin/2
	if last != clock.Never && now.Sub(last) < pause {
		return false
	}
	c.answers.oowAt = now
	return true
}

// checkStamp is what RFC 7323 adds to the first step of SEGMENT ARRIVES.
func (c *Conn) checkStamp(now clock.Time, s *Segment, seq uint64) bool {
	switch {
	case !c.hs.has(flagStamps) || s.Flags.Has(RST):
		return true // RFC 7323 §5.2: PAWS is not for resets
	case s.Flags.Has(SYN) && (c.state.synchronized() || !s.Options.HasTimestamps):
		return true // of another incarnation, which is asked to prove itself
	case !s.Options.HasTimestamps:
		// RFC 7323 §3.2: a non-RST segment without the option SHOULD be dropped silently.
		c.host.drop(DropNoStamp)
		return false
	case !c.stamps.old(now, s.Options.TSVal):
		return true
	}
	// RFC 7323 §5.3 R1: not acceptable, so acknowledged and dropped.
	c.host.drop(DropOldStamp)
	if s.Len == 0 {
		c.offWindowACK(now)
		return false
	}
	c.rcv.reportDuplicate(seq, min(seq+s.space(), c.rcv.nxt))
	c.rcv.ackOutOfOrder(s)
	return false
}

// takeStamp remembers the stamp to echo: RFC 7323 §4.3 (2), that of a segment which begins at or
// before what was acknowledged last, so that a delayed acknowledgment echoes the first segment it
// is for, and a gap does not count as the path's delay.
func (c *Conn) takeStamp(now clock.Time, s *Segment, seq uint64) {
	if !c.hs.has(flagStamps) || !s.Options.HasTimestamps || seq > c.stamps.lastAck ||
		c.stamps.old(now, s.Options.TSVal) {
		return
	}
	c.stamps.recent, c.stamps.recentAt = s.Options.TSVal, now
}
