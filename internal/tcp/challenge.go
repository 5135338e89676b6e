package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// budget counts the challenge ACKs that may still be sent (RFC 5961 §7). It bounds the traffic that
// an attacker can make the host send.
type budget struct {
	left     int
	refilled clock.Time
}

// ackLimits bounds the ACKs to unacceptable segments, which may be forged. It is allocated on
// demand, because few connections need it.
type ackLimits struct {
	oowAt clock.Time // when allowACK last reported true
	// challenges is the connection's budget of challenge ACKs (RFC 5961 §7).
	challenges budget
}

// A connection may send connChallenges in connChallengeTime, as RFC 5961 §7 suggests.
const (
	connChallenges    = 10
	connChallengeTime = 5 * time.Second
)

func (b *budget) stale(now clock.Time, every time.Duration) bool {
	return b.refilled == clock.Never || now.Sub(b.refilled) >= every
}

// challenges counts the challenge ACKs of a host.
type challenges struct {
	cfg          *Config
	all          budget // the budget of this second
	sent, spared uint64
}

// spend takes one challenge ACK from both the connection's and the host's budget. It takes nothing
// and reports false if either is empty.
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

// allowance returns the host's budget for the second that begins. The budget is random, around the
// configured mean. All connections share it, so an off-path attacker who knew it could learn how
// many challenge ACKs the host sends to others (CVE-2016-5696).
func (h *challenges) allowance(now clock.Time) int {
	n := h.cfg.Limits.ChallengeAcks
	random := keyedAt(&h.cfg.Secret, 'b', &Tuple{}, uint32(uint64(now)/uint64(time.Second)))
	return max(1, n/2+int(random%uint64(n)))
}

// challengeACK drops a segment that may be forged or may come from a peer that has restarted, and
// answers it with a challenge ACK if the budgets allow (RFC 5961 §3.2, §4.2, §5.2).
func (r *receiver) challengeACK(now clock.Time, reason Drop) {
	r.drop(reason)
	if r.ackLimits == nil {
		r.ackLimits = new(ackLimits)
	}
	if r.shared.challenges.spend(now, &r.ackLimits.challenges) {
		r.ack.atOnce()
	}
}

// limitedACK answers an empty segment that needs an acknowledgment, such as a probe, a keepalive or
// an old FIN. RFC 9293 §3.10.7.4 requires an ACK. But two ends that disagree about sequence numbers
// would answer each other forever, and some course nodes repeat a FIN thousands of times. So
// limitedACK sends at most one ACK per half an RTOMin, which answers every regular retransmission.
func (r *receiver) limitedACK(now clock.Time) {
	if r.allowACK(now) {
		r.ack.atOnce()
	}
}

// allowACK reports whether half an RTOMin has passed since it last reported true. If so, it starts
// the next interval.
func (r *receiver) allowACK(now clock.Time) bool {
	if r.ackLimits == nil {
		r.ackLimits = new(ackLimits)
	}
	last, pause := r.ackLimits.oowAt, r.shared.cfg.Recovery.RTOMin/2
	if last != clock.Never && now.Sub(last) < pause {
		return false
	}
	r.ackLimits.oowAt = now
	return true
}
