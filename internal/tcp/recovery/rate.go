package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// rate is the last delivery rate.
type rate struct {
	bytes      int64 // a second
	appLimited bool  // the application limited the rate, not the path
}

// rateSample is the state at the time when the newest delivered segment was sent. The delivery rate
// is computed from it.
type rateSample struct {
	sentAt    clock.Time // never: nothing was delivered
	since     clock.Time // when the delivery before that transmission was reported
	delivered uint64     // bytes delivered before that transmission
	sending   time.Duration
	pipe      int
	lost      uint32
	limited   bool // the application limited the sender
}

// note updates the sample from a delivered record, unless the record of the sample was sent later.
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

// rate returns the delivery rate in bytes per second, or zero if the sample is not valid. The rate
// is the data delivered since the segment was sent, divided by a time. That time is the longer of
// the times for sending and for acknowledging the data, because either may have been compressed. If
// it is shorter than the minimum round trip, an earlier transmission was acknowledged.
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
