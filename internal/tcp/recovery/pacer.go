package recovery

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Pacer spreads a connection's trains over the round trip. It holds back only
// what congestion control governs: acknowledgments, probes of the window, of the
// tail and of the peer leave at once, and are counted.
type Pacer struct {
	next clock.Time // when the next train may leave
	rate int64      // bytes a second; zero: no pacing
}

// paceQuantum is what a train may hold, as time at the pacing rate: the bursts
// that a path sees against the timers and system calls that a host pays.
const paceQuantum = time.Millisecond

// The factors by which the pacing rate of a window-based algorithm exceeds its
// window in a round trip. In slow start, twice: the window doubles in a round.
// After it somewhat more than once, so that the window stays the limit.
const (
	paceSlowStart = 2.0
	paceAvoidance = 1.2
)

// set takes the rate that holds from now on.
func (p *Pacer) set(rate int64) {
	if p.rate = rate; rate == 0 {
		p.next = clock.Never
	}
}

// quantum returns how many bytes may leave at once: a millisecond's worth, and
// at least two segments, so that a receiver that acknowledges every second one
// answers each train. A train's own limit comes on top.
func (p *Pacer) quantum(mss int) int {
	return max(2*mss, int(p.rate/int64(time.Second/paceQuantum)))
}

// Holds returns until when the next train must wait; Never: it need not wait.
func (p *Pacer) Holds(now clock.Time) clock.Time {
	if p.rate == 0 || p.next <= now {
		return clock.Never
	}
	return p.next
}

// sent notes that a train of n bytes left at now. A train that left late makes up for at most a
// quantum. A fast link's trains are shorter than that, and each would otherwise lose the tens of
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
