package rdt

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// timeout is how long to wait for an acknowledgment: always the same, or, if it is
// adaptive, the estimate of RFC 6298 §2.
type timeout struct {
	adaptive     bool
	least, most  time.Duration
	current      time.Duration
	srtt, rttvar time.Duration
	backedOff    clock.Time // when it was last doubled
}

func newTimeout(cfg *Config) timeout {
	return timeout{
		adaptive: cfg.Adaptive, least: cfg.MinTimeout, most: cfg.MaxTimeout, current: cfg.Timeout,
	}
}

// sample takes a round trip into account.
func (t *timeout) sample(rtt time.Duration) {
	if t.srtt == 0 { // RFC 6298 §2.2
		t.srtt, t.rttvar = rtt, rtt/2
	} else { // RFC 6298 §2.3: alpha is 1/8, beta 1/4
		t.rttvar = (3*t.rttvar + (t.srtt - rtt).Abs()) / 4
		t.srtt = (7*t.srtt + rtt) / 8
	}
	if t.adaptive {
		t.current = min(max(t.srtt+4*t.rttvar, t.least), t.most)
	}
}

// expired notes that what was sent at sentAt has not been answered in time. RFC 6298
// §5.5: the time-out doubles; once for all that was sent before it did.
func (t *timeout) expired(now, sentAt clock.Time) {
	if t.adaptive && sentAt >= t.backedOff {
		t.current = min(2*t.current, t.most)
		t.backedOff = now
	}
}
