package rcp

import "time"

// timer is the retransmission timer of RFC 6298, for sockets that have one. Each packet
// waits for itself, since an acknowledgment speaks of each.
type timer struct {
	srtt, rttvar time.Duration
	rto          time.Duration // what a packet waits that is sent for the first time
	tick, limit  time.Duration
}

// newTimer returns a timer without a sample. RFC 6298 §2.1: it waits a second then, or half of
// the timeout if that is less.
func newTimer(cfg *Config) timer {
	return timer{
		rto: min(time.Second, cfg.Timeout/2, cfg.MaxRTO), tick: cfg.Tick, limit: cfg.MaxRTO,
	}
}

// sample takes a round trip. RFC 6298 §3: of packets that were sent once.
func (t *timer) sample(rtt time.Duration) {
	if t.srtt == 0 {
		// RFC 6298 §2.2: the first.
		t.srtt, t.rttvar = max(rtt, 1), rtt/2
	} else {
		// RFC 6298 §2.3: the deviation first, with the old mean.
		t.rttvar += ((t.srtt - rtt).Abs() - t.rttvar) / 4
		t.srtt = max(t.srtt+(rtt-t.srtt)/8, 1)
	}
	// The clock's granularity G is the send loop's. RFC 6298 §2.4 wants at least a second
	// on top; a peer answers every tick, so that waiting so long would only be waiting.
	t.rto = min(t.srtt+max(t.tick, 4*t.rttvar), t.limit)
}

// backoff returns what a packet waits that has waited d in vain: twice that (RFC 6298
// §5.5), within the limit that RFC 6298 §2.5 allows.
func (t *timer) backoff(d time.Duration) time.Duration { return min(2*d, t.limit) }
