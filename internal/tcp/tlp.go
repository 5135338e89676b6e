package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// tlp is the tail loss probe, RFC 8985 §7: when the end of a flight stays
// unanswered for about two round trips, one more segment makes the peer speak,
// and RACK sees what it lacks long before the time-out.
type tlp struct {
	start  uint64 // where a probe that repeats old data begins
	end    uint64 // snd.Nxt when the probe was sent, zero when none is out
	again  bool   // the probe repeated old data
	due    bool   // it is to be sent
	inside bool   // one was sent in recovery, and nothing has been delivered since
}

// probeFloor keeps probes away from round trips that are shorter than what a
// busy machine takes to look at its sockets.
const probeFloor = 2 * time.Millisecond

// probeSegments is how many new segments a probe is. RFC 8985 §7.3 has one. But what is silent is
// often a train whose only acknowledgment was lost: then one more segment is in order, and the
// peer may hold its answer back for as long as it delays acknowledgments (Linux: 40 ms), where
// two draw one at once (RFC 5681 §4.2). RFC 9002 §6.2.4 lets a probe be two for a like reason.
const probeSegments = 2

// armProbe is TLP_calc_PTO, §7.2. A probe is scheduled when the peer talks SACK, nothing is known
// to be missing, no probe is out, and there was a sample of the round trip since the last (§7.3).
//
// In recovery RFC 8985 leaves silence to the time-out, and two round trips without a word are
// silence there too: on a path of 150 µs that loses one packet in twenty each way, most of what
// a time-out of 200 ms costs falls there. So once for each silence the first segment goes again,
// whose answer, if there is one, comes at once and says all that the peer has. The window is not
// raised by it, and where a time-out has begun to back off, it is left alone (RFC 6298 §5.5).
func (v *recovery) armProbe(now clock.Time) {
	v.at.probe = clock.Never
	p, e := &v.lasting.tlp, &v.ep
	may := v.how.probes && !v.sent.empty() && v.rtt.srtt != 0
	if e.kind == steady {
		may = may && p.end == 0 && v.rtt.fresh && v.sent.count[sacked] == 0 &&
			v.sent.count[lost] == 0
	} else {
		may = may && !p.inside && e.forward == forwardOff && v.backoff == 0
	}
	if !may || v.shared.FinTimeout != 0 && v.sent.onlyFIN() {
		return
	}
	// Two round trips, and, which RFC 8985 §7.2 does not ask for, not less than the variance
	// allows for: on a path whose round trips vary by more than their mean a probe after two of
	// them mostly repeats what is not lost. A floor for very short ones is ours too.
	floor := min(probeFloor, v.shared.RTOMin/4)
	if v.lossFree() {
		floor = pauseFloor
	}
	wait := max(2*v.rtt.srtt, v.rtt.srtt+4*v.rtt.rttvar, floor)
	if v.sent.len() == 1 {
		// RFC 8985 §7.2's max_ack_delay is the peer's, which nothing tells us. We take our own:
		// what peers configured alike take at most, which makes probes useful on short paths;
		// one that delays longer gets a needless probe, which costs it a D-SACK.
		wait += v.shared.AckDelay
	}
	due := now.Later(wait)
	if rto := v.at.rto; rto != clock.Never {
		due = min(due, rto)
	}
	v.at.probe = due
}

// onProbeTimer asks for the probe; output sends it.
func (v *recovery) onProbeTimer(now clock.Time) {
	if v.sent.empty() {
		return
	}
	v.lasting.tlp.due = true
	v.rtt.fresh = false
	v.lasting.counts.TailProbes++
	v.armRTO(now)
}

// repeatProbe takes a segment for sent again as a probe: the last one, in a recovery the first.
func (v *recovery) repeatProbe(now clock.Time) (s span, ok bool) {
	if v.ep.kind != steady {
		s, ok = v.repeat(now, v.sent.first)
		v.lasting.tlp.inside = ok
	} else if s, ok = v.repeat(now, v.sent.next-1); ok {
		v.probed(now, true, s.seq)
	}
	return s, ok
}

// probed notes that a probe was sent, of old data from start on if it repeats any.
func (v *recovery) probed(now clock.Time, again bool, start uint64) {
	p := &v.lasting.tlp
	p.again, p.end = again, v.snd.Nxt
	if again {
		p.start = start
	}
	v.at.probe = clock.Never
	v.armRTO(now)
}

// probeAnswered is TLP_process_ack, §7.4.2.
func (v *recovery) probeAnswered(now clock.Time, r *round) {
	p := &v.lasting.tlp
	if p.end == 0 {
		return
	}
	both := r.dsack && r.dsackEnd == p.end
	switch {
	case v.snd.Una < p.end && !both:
	case !p.again, both:
		p.end = 0 // new data was needed, or both copies arrived
	case v.snd.Una > p.end:
		// The probe repaired the only loss, which must still count as one.
		p.end = 0
		v.noteLoss(now)
		if v.ep.kind == steady {
			v.cc.OnLoss(v.lossEvent(now, congestion.Detected, r.flight))
			v.exit(now, false)
		}
	case r.dups > 0 && !r.dsack:
		p.end = 0
	}
}
