package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Pacer spreads a connection's trains over the round trip. It delays only segments that congestion
// control limits. Acknowledgments, window probes, tail loss probes and keepalives leave at once,
// but count towards the rate.
type Pacer struct {
	next clock.Time // when the next train may leave
	rate int64      // bytes a second; zero: no pacing
}

// paceQuantum is how long a train takes at the pacing rate. It is a compromise between bursts on
// the path and the cost of timers and system calls on the host.
const paceQuantum = time.Millisecond

// These are the factors by which the pacing rate of a window-based algorithm exceeds one window per
// round trip. In slow start the factor is two, because the window doubles in a round. Afterwards it
// is somewhat more than one, so that the window still limits the sender.
const (
	paceSlowStart = 2.0
	paceAvoidance = 1.2
)

func (p *Pacer) set(rate int64) {
	if p.rate = rate; rate == 0 {
		p.next = clock.Never
	}
}

// quantum returns how many bytes may leave at once: the data of a millisecond, and at least two
// segments. So a receiver that acknowledges every second segment answers each train. A train also
// has its own limit.
func (p *Pacer) quantum(mss int) int {
	return max(2*mss, int(p.rate/int64(time.Second/paceQuantum)))
}

// Holds returns the time until which the next train must wait, or clock.Never if it may leave at
// once.
func (p *Pacer) Holds(now clock.Time) clock.Time {
	if p.rate == 0 || p.next <= now {
		return clock.Never
	}
	return p.next
}

// sent records that a train of n bytes left at now. If it left late, the next trains may leave
// sooner, by at most a quantum. Otherwise each train of a fast link would lose the tens of
// microseconds that a timer costs.
func (p *Pacer) sent(now clock.Time, n, mss int) {
	if p.rate == 0 || n == 0 {
		return
	}
	p.next = max(p.next, now.Add(-p.lasts(p.quantum(mss)))).Add(p.lasts(n))
}

// lasts returns how long n bytes take at the rate.
func (p *Pacer) lasts(n int) time.Duration {
	return time.Duration(float64(n) * 1e9 / float64(p.rate))
}
