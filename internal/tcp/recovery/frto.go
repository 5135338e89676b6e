package recovery

// forward is the state of F-RTO, RFC 5682: after a time-out only the first
// segment is sent again, then something new, and what is acknowledged meanwhile
// tells whether the rest of the flight was lost or only late.
type forward uint8

const (
	forwardOff   forward = iota // conventional recovery, or none
	forwardFirst                // step 2: the first segment was retransmitted and nothing else
	forwardNew                  // step 3: its acknowledgment came, and new segments follow it
)

// forwardSegments is how many new segments step 2b sends.
const forwardSegments = 2

// mayForward reports whether a time-out may be doubted. RFC 5682 §2.1 step 1: not while an earlier
// one is being recovered from, for what that sent again would be mistaken for the original; nothing
// speaks against it as long as that was the very segment that times out now. Nor in fast recovery,
// where segments were sent again as well.
func (e *episode) mayForward(una uint64) bool {
	return e.kind == steady ||
		e.kind == restarting && e.forward == forwardFirst && e.timedOut == una
}

// lookForward is steps 2 and 3, on an acknowledgment; §2.1 is the basic form,
// §3.1 the one for a peer with SACK. More says that there is something new to send. It reports
// whether the time-out was spurious, and whether all that is in flight is to be sent again.
func (e *episode) lookForward(r *Ack, snd *Space, sack, more bool) (spurious, resend bool) {
	switch {
	case e.forward == forwardFirst && r.advance > 0 && more:
		e.forward, e.fresh = forwardNew, forwardSegments*snd.MSS
	case e.forward == forwardFirst && (r.advance > 0 || r.Dups > 0 && !sack):
		// Conventional: there is nothing new to send, or §2.1 step 2a; with SACK, §3.1 step 2
		// stays and waits.
		e.forward = forwardOff
	case e.forward == forwardNew && r.earlier > 0 && !r.rtt.again:
		// Step 3b: what was in flight as the time-out came, and was not sent again, arrives.
		return true, false
	case e.forward == forwardNew && (r.Dups > 0 && !sack || r.Delivered > 0):
		// Step 3a: a duplicate came, or only what is new is reported. With three segments for a
		// window, one more may leave beside the two new ones. With SACK a duplicate has something
		// to report (RFC 6675 §2), and one that has not is the copy of an acknowledgment
		// (acksAfterGap).
		e.forward, e.force = forwardOff, true
		if sack {
			return false, false
		}
		// A peer without SACK may be one that keeps nothing out of order. Then the new segments are
		// gone as well, and nothing but another time-out would tell.
		e.point = snd.Nxt
		return false, true
	}
	return false, false
}

// Fresh returns how many new bytes step 2b still sends, and whether nothing else may be sent.
func (e *episode) Fresh() (n int, only bool) { return e.fresh, e.forward == forwardNew }

// EndForward ends F-RTO if there turns out to be nothing new to send, and reports whether it did.
func (e *episode) EndForward(mss int) bool {
	if e.fresh != forwardSegments*mss {
		return false
	}
	e.forward = forwardOff
	return true
}
