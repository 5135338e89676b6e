package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// rate is the last delivery rate.
type rate struct {
	bytes      int64 // a second
	appLimited bool  // it was the application's rather than the path's
}

// rateSample is what the newest segment that an acknowledgment delivered
// remembers of the moment when it was sent: the basis of the delivery rate.
type rateSample struct {
	sentAt    clock.Time // never: nothing was delivered
	since     clock.Time // when the delivery that preceded its transmission was known
	delivered uint64     // bytes delivered by then
	sending   time.Duration
	pipe      int
	lost      uint32
	limited   bool // the application was the limit
}

// note takes a delivered record if none that was sent later has been seen.
func (s *rateSample) note(q *sentQueue, rec *record) {
	if s.sentAt != clock.Never && rec.sentAt < s.sentAt {
		return
	}
	*s = rateSample{
		sentAt: rec.sentAt, since: rec.deliveredAt, delivered: rec.delivered,
		sending: rec.sentAt.Sub(rec.firstSentAt), pipe: int(rec.pipe), lost: rec.lost,
		limited: rec.flags&recAppLimited != 0,
	}
	q.firstSentAt = rec.sentAt
}

// rate computes the delivery rate in bytes a second, zero when this is no sample: what was
// delivered since the segment was sent, over the longer of the times that sending and acknowledging
// it took, because either may have been compressed. An interval shorter than the shortest round
// trip means that an earlier transmission was acknowledged.
func (q *sentQueue) rate(now clock.Time, s *rateSample, minRTT time.Duration) int64 {
	if s.sentAt == clock.Never {
		return 0
	}
	interval := max(now.Sub(s.since), s.sending)
	if interval <= 0 || interval < minRTT {
		return 0
	}
	return int64(float64(q.delivered-s.delivered) * 1e9 / float64(interval))
}
