package recovery

// forward is the state of F-RTO (RFC 5682). After a timeout the sender retransmits only the first
// segment, and then sends new data. The acknowledgments show whether the rest of the flight was
// lost or only late.
type forward uint8

const (
	forwardOff   forward = iota // conventional recovery, or none
	forwardFirst                // step 2: only the first segment was retransmitted
	forwardNew                  // step 3: that segment was acknowledged, and new segments follow
)

// forwardSegments is the number of new segments in step 2b.
const forwardSegments = 2

// mayForward reports whether F-RTO may run. RFC 5682 §2.1 step 1 excludes timeouts during an
// earlier recovery, because acknowledgments of its retransmissions look like acknowledgments of
// original transmissions. F-RTO is safe if the earlier timeout was of the same segment. It is not
// safe in fast recovery, which has also retransmitted.
func (e *episode) mayForward(una uint64) bool {
	return e.kind == steady ||
		e.kind == restarting && e.forward == forwardFirst && e.timedOut == una
}

// lookForward performs steps 2 and 3 of F-RTO on an acknowledgment. RFC 5682 §2.1 is the basic
// form, §3.1 the form with SACK. more says that new data waits to be sent. lookForward reports
// whether the timeout was spurious, and whether to retransmit everything in flight.
func (e *episode) lookForward(r *Ack, snd *Space, sack, more bool) (spurious, resend bool) {
	switch {
	case e.forward == forwardFirst && r.advance > 0 && more:
		e.forward, e.fresh = forwardNew, forwardSegments*snd.MSS
	case e.forward == forwardFirst && (r.advance > 0 || r.Dups > 0 && !sack):
		// Use conventional recovery: no new data waits, or §2.1 step 2a applies. With SACK,
		// duplicates do not matter yet (§3.1 step 2).
		e.forward = forwardOff
	case e.forward == forwardNew && r.earlier > 0 && !r.rtt.retransmitted:
		// Step 3b: data from before the timeout that was not retransmitted has arrived.
		return true, false
	case e.forward == forwardNew && (r.Dups > 0 && !sack || r.Delivered > 0):
		// Step 3a: the acknowledgment is a duplicate, or reports only new data. In a window of
		// three segments, one more segment may leave after the two new ones. With SACK, a duplicate
		// reports something (RFC 6675 §2); otherwise it is a copy of an earlier acknowledgment
		// (acksAfterGap).
		e.forward, e.force = forwardOff, true
		if sack {
			return false, false
		}
		// A peer without SACK may keep no out-of-order data. Then the new segments are lost too,
		// and only another timeout would show that.
		e.point = snd.Nxt
		return false, true
	}
	return false, false
}

// Fresh returns how many new bytes step 2b may still send, and whether the sender may send only
// these.
func (e *episode) Fresh() (n int, only bool) { return e.fresh, e.forward == forwardNew }

// EndForward ends F-RTO if no new data has followed the first segment, and then returns true.
func (e *episode) EndForward(mss int) bool {
	if e.fresh != forwardSegments*mss {
		return false
	}
	e.forward = forwardOff
	return true
}
