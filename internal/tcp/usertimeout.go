package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// userTimeout limits how long data may wait to be sent or acknowledged (RFC 9293 §3.8.3). The peer
// may propose the limit (RFC 5482).
type userTimeout struct {
	limit     time.Duration // zero: Retries limit the wait
	at        clock.Time    // when the timer expires; never: it is off
	since     clock.Time    // when the wait began: data was sent, or the window closed
	chosen    bool          // the user has set limit: ignore the peer's (RFC 5482 §3.1)
	advertise bool          // send limit to the peer (ENABLED)
	due       bool          // the next bare acknowledgment must carry the option
}

// offer returns the option to send now, or zero.
func (u *userTimeout) offer() uint16 {
	if !u.advertise || u.limit == 0 {
		return 0
	}
	return encodeTimeout(u.limit)
}

// adoptTimeout applies the timeout that the peer proposes, unless the user has set one. RFC 5482
// §3.1: USER_TIMEOUT = min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)).
func (d *sender) adoptTimeout(now clock.Time, v uint16) {
	if v&timeoutNumber == 0 || d.wait.chosen {
		return // §3.2: a value of zero must be ignored
	}
	d.wait.limit = min(max(decodeTimeout(v), leastPeerTimeout), mostPeerTimeout)
	if d.pending() {
		d.wait.watch(now)
	}
}

// These are the bounds of the timeout that a peer may propose (RFC 5482 §3.1). The lower one is the
// 100 s of RFC 1122 §4.2.3.5. The upper one is an hour, so that a peer cannot occupy memory longer.
const (
	leastPeerTimeout = 100 * time.Second
	mostPeerTimeout  = time.Hour
)

func (u *userTimeout) set(d time.Duration) {
	u.limit, u.chosen = d, d != 0
	u.due = u.advertise && d != 0
}

// watch starts the timer if it is not running. The caller has data that waits.
func (u *userTimeout) watch(now clock.Time) {
	if u.since == clock.Never {
		u.since = now
	}
	if u.limit > 0 && u.at == clock.Never {
		u.at = max(u.since.Add(u.limit), now)
	}
}

// expired is called when the timer expires, and reports whether the wait has been too long.
// Otherwise it restarts the timer, because progress updates only since.
func (u *userTimeout) expired(now clock.Time, waits bool) bool {
	switch {
	case u.limit == 0:
	case !waits:
		u.since = clock.Never
	case now.Sub(u.since) >= u.limit:
		return true
	default:
		u.at = u.since.Add(u.limit)
	}
	return false
}

// exhausted reports whether a number of retries is too high. With a user timeout, the number of
// retries does not matter.
func (u *userTimeout) exhausted(retries, limit int) bool { return u.limit == 0 && retries > limit }

// The option's value (RFC 5482 §3) is a number of 15 bits, and a bit that selects minutes.
const (
	timeoutMinutes = 1 << 15
	timeoutNumber  = timeoutMinutes - 1
)

// encodeTimeout returns the option's value for a timeout, rounded up.
func encodeTimeout(d time.Duration) uint16 {
	if s := (d + time.Second - 1) / time.Second; s <= timeoutNumber {
		return uint16(s)
	}
	m := min((d+time.Minute-1)/time.Minute, timeoutNumber)
	return timeoutMinutes | uint16(m)
}

func decodeTimeout(v uint16) time.Duration {
	if v&timeoutMinutes != 0 {
		return time.Duration(v&timeoutNumber) * time.Minute
	}
	return time.Duration(v) * time.Second
}
