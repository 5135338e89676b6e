package tcp

import "github.com/tidepool-net/tidepool/internal/clock"

// forward is the state of F-RTO, RFC 5682: after a time-out only the first
// segment is sent again, then something new, and what is acknowledged meanwhile
// tells whether the rest of the flight was lost or only late.
type forward uint8

const (
	// forwardOff: conventional recovery, or none.
	forwardOff forward = iota
	// forwardFirst is step 2: the first segment was sent again and nothing else.
	forwardFirst
	// forwardNew is step 3: its acknowledgment came, and new segments follow it.
	forwardNew
)

// forwardSegments is how many new segments step 2b sends.
const forwardSegments = 2

// mayForward reports whether a time-out may be doubted. RFC 5682 §2.1 step 1:
// not while an earlier one is being recovered from, for what that sent again
// would be mistaken for the original; nothing speaks against it as long as that
// was the very segment that times out now. Nor in fast recovery, where segments
// were sent again as well.
func (c *Conn) mayForward() bool {
	if !c.how.forward {
		return false
	}
	return c.rec.kind == steady ||
		c.rec.kind == restarting && c.rec.forward == forwardFirst && c.rec.timedOut == c.snd.una
}

// lookForward is steps 2 and 3, on an acknowledgment; §2.1 is the basic form,
// §3.1 the one for a peer with SACK.
func (c *Conn) lookForward(now clock.Time, r *round) {
	p := &c.rec
	switch p.forward {
	case forwardFirst:
		switch {
		case r.advance > 0:
			p.forward, p.fresh = forwardNew, forwardSegments*c.snd.mss
			if c.unsent() == 0 || c.usableWindow() <= 0 {
				p.forward = forwardOff // nothing new to send: conventional
			}
		case r.dups > 0 && !c.how.sack:
			p.forward = forwardOff // §2.1 step 2a; with SACK, §3.1 step 2 stays and waits
		}
	case forwardNew:
		switch {
		case r.earlier > 0 && !r.again:
			// Step 3b: what was in flight as the time-out came, and was not sent again, arrives.
			c.takeBack(now)
		case r.dups > 0 && !c.how.sack || r.delivered > 0:
			// With SACK a duplicate has something to report (RFC 6675 §2), and one that has not
			// is the copy of an acknowledgment (acksAfterGap).
			c.stopForward()
		}
	default:
	}
}

// stopForward is step 3a: a duplicate came, or only what is new is reported. With
// three segments for a window, one more may leave beside the two new ones.
func (c *Conn) stopForward() {
	c.rec.forward, c.rec.force = forwardOff, true
	if c.how.sack {
		return
	}
	// A peer without SACK may be one that keeps nothing out of order. Then the new segments are
	// gone as well, and nothing but another time-out would tell.
	c.rec.point = c.snd.nxt
	for l := &c.sent.lists[inFlight]; l.n > 0; {
		c.sent.move(l.head, c.sent.at(l.head), lost)
	}
}

// outputForward sends the new segments of step 2b, and gives up when there turn
// out to be none.
func (c *Conn) outputForward(now clock.Time, room int, t *Train) bool {
	p := &c.rec
	before := c.snd.nxt
	if c.outputNew(now, room, t, min(c.allowance(), p.fresh)) {
		p.fresh -= int(c.snd.nxt - before)
		return true
	}
	if p.fresh == forwardSegments*c.snd.mss {
		p.forward = forwardOff
	}
	return false
}
