package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// userTimeout is how long a connection bears that what it wants to send gets
// nowhere: RFC 9293 §3.8.3, and RFC 5482 to agree with the peer about it.
type userTimeout struct {
	limit  time.Duration // zero: the host's Patience decides
	chosen bool          // by the user: the peer's wish no longer counts (RFC 5482 §3.1)
	tell   bool          // the peer is told (ENABLED)
	due    bool          // on the next bare acknowledgment
	// since is when the oldest wait began: the flight, or the window's being shut.
	since clock.Time
}

// offer is the option to send now, zero for none.
func (u *userTimeout) offer() uint16 {
	if !u.tell || u.limit == 0 {
		return 0
	}
	return encodeTimeout(u.limit)
}

// takeTimeout adapts to what the peer says of its own patience: RFC 5482 §3.1, USER_TIMEOUT =
// min(U_LIMIT, max(ADV_UTO, REMOTE_UTO, L_LIMIT)), unless the user has set one.
func (d *sender) takeTimeout(now clock.Time, v uint16) {
	if v&timeoutNumber == 0 || d.wait.chosen {
		return // §3.2: a value of zero must be ignored
	}
	d.wait.limit = min(max(decodeTimeout(v), leastPeerTimeout), mostPeerTimeout)
	if d.pending() {
		d.wait.watch(now, &d.userTimer)
	}
}

// Bounds of a user timeout that the peer proposes, RFC 5482 §3.1: not below the 100 s of RFC 1122
// §4.2.3.5, nor so long that a peer decides how much memory it keeps busy.
const (
	leastPeerTimeout = 100 * time.Second
	mostPeerTimeout  = time.Hour
)

func (u *userTimeout) set(d time.Duration) {
	u.limit, u.chosen = d, d != 0
	u.due = u.tell && d != 0
}

// watch starts the timer when something has begun to wait.
func (u *userTimeout) watch(now clock.Time, timer *clock.Time) {
	if u.since == clock.Never {
		u.since = now
	}
	if u.limit > 0 && *timer == clock.Never {
		*timer = max(u.since.Add(u.limit), now)
	}
}

// expired is the timer: it reports whether the wait has been too long. Progress notes its time and
// leaves the timer alone.
func (u *userTimeout) expired(now clock.Time, waits bool, timer *clock.Time) bool {
	switch {
	case u.limit == 0:
	case !waits:
		u.since = clock.Never
	case now.Sub(u.since) >= u.limit:
		return true
	default:
		*timer = u.since.Add(u.limit)
	}
	return false
}

// exhausted reports whether a number of retries is too many. A user timeout counts time instead.
func (u *userTimeout) exhausted(retries, limit int) bool { return u.limit == 0 && retries > limit }

// The option of RFC 5482 §3: a bit that says minutes, and fifteen of a number.
const (
	timeoutMinutes = 1 << 15
	timeoutNumber  = timeoutMinutes - 1
)

// encodeTimeout returns the option's value, rounded up to what it can say.
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
