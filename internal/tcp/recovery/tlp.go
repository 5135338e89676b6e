package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// tlp is the state of the tail loss probe (RFC 8985 §7). If the end of a flight is not acknowledged
// for about two round trips, more data makes the peer answer, long before the RTO.
type tlp struct {
	start    uint64 // start of a probe that repeats old data
	end      uint64 // SND.NXT when the probe was sent; zero: no probe is in flight
	repeated bool   // the probe repeated old data
	Due      bool   // a probe must be sent
	inside   bool   // recovery has sent a probe, and nothing has been delivered since
}

// probeFloor is the minimum wait for a probe. A busy machine may read its sockets that late.
const probeFloor = 2 * time.Millisecond

// probeSegments is how many new segments a probe has. RFC 8985 §7.3 sends one. But if only the last
// acknowledgment of a train was lost, one new segment arrives in order, and the peer may delay its
// answer (Linux: 40 ms). Two segments draw an acknowledgment at once (RFC 5681 §4.2). RFC 9002
// §6.2.4 allows two as well.
const probeSegments = 2

// armProbe schedules a probe (TLP_calc_PTO, §7.2) if the peer sends SACK, no segment is known to be
// lost, no probe is in flight, and the round trip was sampled since the last probe (§7.3).
//
// In recovery RFC 8985 waits for the RTO. On a path of 150 µs that loses one packet in twenty each
// way, these RTOs of 200 ms take most of the time. So a probe also retransmits the first segment
// once in each such silence. It does not grow the window, and is not sent once the RTO has begun to
// back off (RFC 6298 §5.5).
func (v *Recovery) armProbe(now clock.Time) {
	v.At.Probe = clock.Never
	p, e := &v.Kept.TLP, &v.Episode
	may := v.strategy.probes && !v.Record.Empty() && v.RTT.SRTT != 0
	if e.kind == steady {
		may = may && p.end == 0 && v.RTT.fresh && v.Record.count[sacked] == 0 &&
			v.Record.count[lost] == 0
	} else {
		may = may && !p.inside && e.forward == forwardOff && v.Backoff == 0
	}
	if !may || v.shared.FinTimeout != 0 && v.Record.onlyFIN() {
		return
	}
	// The wait is two round trips and, unlike in RFC 8985 §7.2, a margin for the variance. If round
	// trips vary by more than their mean, a probe after two of them is mostly spurious.
	floor := min(probeFloor, v.shared.RTOMin/4)
	if v.losses.free() {
		floor = pauseFloor
	}
	wait := max(2*v.RTT.SRTT, v.RTT.SRTT+4*v.RTT.rttvar, floor)
	if v.Record.len() == 1 {
		// The max_ack_delay of RFC 8985 §7.2 is the peer's. We do not know it, so we use ours. A
		// peer with a longer delay gets a spurious probe and reports it by D-SACK.
		wait += v.shared.AckDelay
	}
	due := now.Later(wait)
	if rto := v.At.RTO; rto != clock.Never {
		due = min(due, rto)
	}
	v.At.Probe = due
}

// BeginProbe starts the probe that is due, without pacing, and reports whether anything is in
// flight. segments is how many new segments to send. If it is zero or no new data waits, the caller
// retransmits old data (RFC 8985 §7.3).
func (v *Recovery) BeginProbe(now clock.Time) (segments int, ok bool) {
	if v.Record.Empty() {
		v.Kept.TLP.Due = false
		return 0, false
	}
	v.Pacer.next = min(v.Pacer.next, now)
	if v.Episode.Open() {
		segments = probeSegments
	}
	return segments, true
}

// RepeatProbe records the retransmission of a segment as a probe: the last one, or in a recovery
// the first.
func (v *Recovery) RepeatProbe(now clock.Time) (s Span, ok bool) {
	p := &v.Kept.TLP
	if !v.Episode.Open() {
		s, ok = v.repeat(now, v.Record.first)
		p.inside = ok
	} else if s, ok = v.repeat(now, v.Record.next-1); ok {
		v.Probed(now)
		p.repeated, p.start = true, s.Seq
	}
	p.Due = false
	return s, ok
}

// Probed records that new data was sent as the probe.
func (v *Recovery) Probed(now clock.Time) {
	p := &v.Kept.TLP
	p.Due, p.repeated, p.end = false, false, v.snd.Nxt
	v.At.Probe = clock.Never
	v.ArmRTO(now)
}

// probeAnswered ends the probe when it is acknowledged (TLP_process_ack, §7.4.2).
func (r *Ack) probeAnswered() {
	v := r.v
	p := &v.Kept.TLP
	if p.end == 0 {
		return
	}
	both := r.DSACK == p.end
	switch {
	case v.snd.Una < p.end && !both:
	case !p.repeated, both:
		p.end = 0 // the probe was new data, or both copies arrived
	case v.snd.Una > p.end:
		// The probe repaired the only loss. Congestion control must still see it.
		p.end = 0
		v.noteLoss(r.now)
		if v.Episode.kind == steady {
			v.CC.OnLoss(v.lossEvent(r.now, congestion.Detected, r.flight))
			v.exit(r.now, false)
		}
	case r.Dups > 0 && r.DSACK == 0:
		p.end = 0
	}
}
