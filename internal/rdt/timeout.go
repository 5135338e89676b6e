package rdt

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// timeout is the retransmission timeout. It is constant, or the estimate of RFC 6298 §2 if adaptive
// is set.
type timeout struct {
	adaptive     bool
	least, most  time.Duration
	current      time.Duration
	srtt, rttvar time.Duration
	backedOff    clock.Time // time of the last doubling
}

func newTimeout(cfg *Config) timeout {
	return timeout{
		adaptive: cfg.Adaptive, least: cfg.MinTimeout, most: cfg.MaxTimeout, current: cfg.Timeout,
	}
}

// sample adds a round-trip time to the estimate.
func (t *timeout) sample(rtt time.Duration) {
	if t.srtt == 0 { // first sample (RFC 6298 §2.2)
		t.srtt, t.rttvar = rtt, rtt/2
	} else { // later samples (RFC 6298 §2.3: alpha is 1/8, beta 1/4)
		t.rttvar = (3*t.rttvar + (t.srtt - rtt).Abs()) / 4
		t.srtt = (7*t.srtt + rtt) / 8
	}
	if t.adaptive {
		t.current = min(max(t.srtt+4*t.rttvar, t.least), t.most)
	}
}

// expired processes the timeout of a packet sent at sentAt. It doubles the timeout (RFC 6298 §5.5),
// but only once for all packets sent before the last doubling.
func (t *timeout) expired(now, sentAt clock.Time) {
	if t.adaptive && sentAt >= t.backedOff {
		t.current = min(2*t.current, t.most)
		t.backedOff = now
	}
}
