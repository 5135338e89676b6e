package tcp

import (
	"errors"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// budget is the host's allowance of challenge ACKs, RFC 5961 §7: what an
// attacker can make us send is bounded, whatever it sends.
type budget struct {
	perSecond int
	left      int
	refilled  clock.Time
}

func (b *budget) take(now clock.Time) bool {
	if b.refilled == clock.Never || now.Sub(b.refilled) >= time.Second {
		b.refilled, b.left = now, b.perSecond
	}
	if b.left <= 0 {
		return false
	}
	b.left--
	return true
}

// challengeACK answers a segment that is wrong but may be an honest mistake,
// such as the first SYN of a peer that lost its memory (RFC 5961 §3.2, §4.2,
// §5.2).
func (c *Conn) challengeACK(now clock.Time) {
	if !c.host.challenge.take(now) {
		c.host.counters.ChallengesSpared++
		return
	}
	c.host.counters.ChallengeAcks++
	c.rcv.acks = max(c.rcv.acks, 1)
}

// offWindowACK answers an empty segment that is outside the window: a probe, a
// keepalive, or a FIN that we have had. RFC 9293 §3.10.7.4 wants an ACK, but two
// ends that disagree about where they are would answer each other's answers for
// ever, and nodes of the family repeat a FIN thousands of times; so an interval
// must pass between two. Whoever retransmits by a timer of RTOMin or more gets
// an answer every time.
func (c *Conn) offWindowACK(now clock.Time) {
	if last := c.rcv.oowAt; last != clock.Never && now.Sub(last) < c.host.cfg.RTOMin/2 {
		return
	}
	c.rcv.oowAt = now
	c.rcv.acks = max(c.rcv.acks, 1)
}

func errorsIsRefused(err error) bool { return errors.Is(err, ErrRefused) }
