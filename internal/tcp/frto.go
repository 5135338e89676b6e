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
func (v *recovery) mayForward(r *round) bool {
	if !r.snd.how.forward {
		return false
	}
	return v.kind == steady ||
		v.kind == restarting && v.forward == forwardFirst && v.timedOut == r.snd.una
}

// lookForward is steps 2 and 3, on an acknowledgment; §2.1 is the basic form,
// §3.1 the one for a peer with SACK. More says that there is something new to send. It reports
// whether the time-out was spurious.
func (v *recovery) lookForward(r *round, more bool) (spurious bool) {
	switch v.forward {
	case forwardFirst:
		switch {
		case r.advance > 0 && more:
			v.forward, v.fresh = forwardNew, forwardSegments*r.snd.mss
		case r.advance > 0, r.dups > 0 && !r.snd.how.sack:
			// Conventional: there is nothing new to send, or §2.1 step 2a; with SACK, §3.1 step 2
			// stays and waits.
			v.forward = forwardOff
		}
	case forwardNew:
		switch {
		case r.earlier > 0 && !r.rtt.again:
			// Step 3b: what was in flight as the time-out came, and was not sent again, arrives.
			return true
		case r.dups > 0 && !r.snd.how.sack || r.delivered > 0:
			// With SACK a duplicate has something to report (RFC 6675 §2), and one that has not
			// is the copy of an acknowledgment (acksAfterGap).
			v.stopForward(r)
		}
	default:
	}
	return false
}

// stopForward is step 3a: a duplicate came, or only what is new is reported. With
// three segments for a window, one more may leave beside the two new ones.
func (v *recovery) stopForward(r *round) {
	v.forward, v.force = forwardOff, true
	if r.snd.how.sack {
		return
	}
	// A peer without SACK may be one that keeps nothing out of order. Then the new segments are
	// gone as well, and nothing but another time-out would tell.
	v.point = r.snd.nxt
	v.resendFlight()
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
