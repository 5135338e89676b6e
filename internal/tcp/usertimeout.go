package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// userTimeout is how long data may wait to be sent or acknowledged: RFC 9293 §3.8.3, and RFC 5482
// to negotiate it with the peer.
type userTimeout struct {
	limit  time.Duration // zero: the host's Patience decides
	at     clock.Time    // when to look at since
	since  clock.Time    // the oldest wait began: the flight, or the window's being shut
	chosen bool          // by the user: the peer's wish no longer counts (RFC 5482 §3.1)
	tell   bool          // send it to the peer (ENABLED)
	due    bool          // on the next bare acknowledgment
}

// offer returns the option to send now, or zero.
func (u *userTimeout) offer() uint16 {
	if !u.tell || u.limit == 0 {
		return 0
	}
	return encodeTimeout(u.limit)
}

// takeTimeout takes the peer's timeout: RFC 5482 §3.1, USER_TIMEOUT = min(U_LIMIT, max(ADV_UTO,
// REMOTE_UTO, L_LIMIT)), unless the user has set one.
func (d *sender) takeTimeout(now clock.Time, v uint16) {
	if v&timeoutNumber == 0 || d.wait.chosen {
		return // §3.2: a value of zero must be ignored
	}
	d.wait.limit = min(max(decodeTimeout(v), leastPeerTimeout), mostPeerTimeout)
	if d.pending() {
		d.wait.watch(now)
	}
}

// Bounds of the peer's timeout, RFC 5482 §3.1: at least the 100 s of RFC 1122 §4.2.3.5, and at most
// an hour, so that a peer cannot occupy memory for longer.
const (
	leastPeerTimeout = 100 * time.Second
	mostPeerTimeout  = time.Hour
)

func (u *userTimeout) set(d time.Duration) {
	u.limit, u.chosen = d, d != 0
	u.due = u.tell && d != 0
}

// watch starts the timer when data begins to wait.
func (u *userTimeout) watch(now clock.Time) {
	if u.since == clock.Never {
		u.since = now
	}
	if u.limit > 0 && u.at == clock.Never {
		u.at = max(u.since.Add(u.limit), now)
	}
}

// expired handles the timer and reports whether the wait has been too long. Progress updates since
// and not the timer.
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

// exhausted reports whether a number of retries is too high. With a user timeout, only time counts.
func (u *userTimeout) exhausted(retries, limit int) bool { return u.limit == 0 && retries > limit }

// The option of RFC 5482 §3: a bit for minutes, and a 15-bit number.
const (
	timeoutMinutes = 1 << 15
	timeoutNumber  = timeoutMinutes - 1
)

// encodeTimeout returns the option's value, rounded up.
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
