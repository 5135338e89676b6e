package rcp

import "time"

// timer is the retransmission timer of RFC 6298. Each packet has its own timer, because
// acknowledgments report each packet.
type timer struct {
	srtt, rttvar time.Duration
	rto          time.Duration // timer of a first transmission
	tick, limit  time.Duration
}

// newTimer returns a timer without a sample. Its value is then the least of a second (RFC 6298
// §2.1), half of Config.Timeout, and MaxRTO.
func newTimer(cfg *Config) timer {
	return timer{
		rto: min(time.Second, cfg.Timeout/2, cfg.MaxRTO), tick: cfg.Tick, limit: cfg.MaxRTO,
	}
}

// sample adds a round trip. The packet must not have been retransmitted (RFC 6298 §3).
func (t *timer) sample(rtt time.Duration) {
	if t.srtt == 0 {
		// RFC 6298 §2.2 defines the values after the first sample.
		t.srtt, t.rttvar = max(rtt, 1), rtt/2
	} else {
		// RFC 6298 §2.3 updates the deviation first, with the old mean.
		t.rttvar += ((t.srtt - rtt).Abs() - t.rttvar) / 4
		t.srtt = max(t.srtt+(rtt-t.srtt)/8, 1)
	}
	// The clock granularity G is the tick. RFC 6298 §2.4 requires at least one second, but a peer
	// answers every tick, so such a minimum would only cause delay.
	t.rto = min(t.srtt+max(t.tick, 4*t.rttvar), t.limit)
}

// backoff doubles a packet's expired timer (RFC 6298 §5.5), up to the limit that RFC 6298 §2.5
// allows.
func (t *timer) backoff(d time.Duration) time.Duration { return min(2*d, t.limit) }
