package netem

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// PIE is the queue of RFC 8033: a controller estimates how long packets wait, and computes from it,
// every Update, the probability of dropping arriving packets.
type PIE struct {
	// Target is the wait that the controller aims at; 0: 15 ms (RFC 8033 §4.2, QDELAY_REF).
	Target time.Duration
	// Update is how often the probability changes; 0: 15 ms (T_UPDATE).
	Update time.Duration
	// Burst is how long a burst into an idle queue is accepted without drops; 0: 150 ms (RFC 8033
	// §4.4, MAX_BURST).
	Burst time.Duration
	// Alpha and Beta are the controller's weights in 1/s. Alpha is the weight of the distance from
	// the target, and Beta is the weight of the change of the wait. 0: 0.125 and 1.25 (RFC 8033
	// §4.2).
	Alpha, Beta float64
	// Timestamps uses the wait of the last packet that left as the estimate (the alternative of RFC
	// 8033 §4.3), instead of the queue's length divided by its departure rate.
	Timestamps bool
	// ECN marks packets instead of dropping them if their transport is ECN-capable, up to a
	// probability of a tenth (RFC 8033 §5.1).
	ECN bool
	// Packets, Bytes and Time limit the queue. A full queue drops arriving packets. Zero means no
	// limit. If all are zero, the limit is 1000 packets, as in Linux.
	Packets, Bytes int
	Time           time.Duration
}

// These are the defaults, and other constants of RFC 8033.
const (
	pieTarget  = 15 * time.Millisecond
	pieUpdate  = 15 * time.Millisecond
	pieBurst   = 150 * time.Millisecond
	pieAlpha   = 0.125
	pieBeta    = 1.25
	piePackets = 1000

	// pieThreshold is the queue length, in bytes, from which the departure rate is measured, and
	// the amount of data of one measurement (RFC 8033 §5.2, DQ_THRESHOLD).
	pieThreshold = 1 << 14
	// pieMeanPacket is MEAN_PKTSIZE of RFC 8033 §4.1.
	pieMeanPacket = 1024
	// pieMarks is the probability above which packets are dropped instead of marked (RFC 8033
	// §5.1).
	pieMarks = 0.1
)

func (c PIE) bound() Bound { return Bound{Packets: c.Packets, Bytes: c.Bytes, Time: c.Time} }

func (c PIE) withDefaults() PIE {
	c.Target, c.Update = cmp.Or(c.Target, pieTarget), cmp.Or(c.Update, pieUpdate)
	c.Burst = cmp.Or(c.Burst, pieBurst)
	c.Alpha, c.Beta = cmp.Or(c.Alpha, pieAlpha), cmp.Or(c.Beta, pieBeta)
	if c.bound() == (Bound{}) {
		c.Packets = piePackets
	}
	return c
}

// Validate returns an error if the description is invalid.
func (c PIE) Validate() error {
	c = c.withDefaults()
	const least = 10 * time.Microsecond
	switch {
	case c.Target <= 0 || c.Target > maxDelay || c.Burst < 0 || c.Burst > maxDelay:
		return fmt.Errorf("%w: pie target %v, burst %v: the target must be above 0, "+
			"the burst 0 or more, and both at most %v", ErrConfig, c.Target, c.Burst, maxDelay)
	case c.Update < least || c.Update > maxDelay:
		return fmt.Errorf("%w: pie update %v: must be %v to %v", ErrConfig, c.Update, least,
			maxDelay)
	case !(c.Alpha > 0 && c.Alpha <= 1000) || !(c.Beta > 0 && c.Beta <= 1000):
		return fmt.Errorf("%w: pie alpha %v, beta %v: both must be more than 0, up to 1000",
			ErrConfig, c.Alpha, c.Beta)
	}
	return c.bound().Validate()
}

// Start implements Discipline.
func (c PIE) Start(s Site) Queue {
	c = c.withDefaults()
	q := &pie{cfg: c, random: s.Random, mark: s.Mark, burst: c.Burst}
	q.room, q.drop = s.room(c.bound()), s.Drop
	return q
}

type pie struct {
	dropTail
	cfg    PIE
	random *rand.Rand
	mark   func(clock.Time, *Packet) bool

	dropProb    float64
	accumulated float64       // sum of dropProb since the last drop (accu_prob of RFC 8033 §5.4)
	burst       time.Duration // remaining burst allowance
	delay       time.Duration // estimated wait at the last update
	updated     clock.Time    // time of the last update; never: no packet has arrived yet
	sojourn     time.Duration // sojourn time of the last packet that left

	measuring bool
	since     clock.Time
	passed    int           // bytes since the measurement began
	sending   int           // bytes of the last packet taken
	perCycle  time.Duration // smoothed time for pieThreshold bytes; 0: not measured yet
}

// Put implements Queue: RFC 8033 §4.1.
func (q *pie) Put(now clock.Time, p *Packet) {
	q.update(now)
	if q.dropsEarly() {
		if !q.cfg.ECN || q.dropProb >= pieMarks || !q.mark(now, p) {
			q.accumulated = 0
			q.drop(now, p, Early)
			return
		}
		q.accumulated = 0
	}
	q.dropTail.put(now, p)
}

// dropsEarly decides at random whether to drop a packet. It never drops in the cases that RFC 8033
// §4.1 excludes.
func (q *pie) dropsEarly() bool {
	const safe, few = 0.2, 2 * pieMeanPacket
	switch {
	case q.burst > 0:
		return false
	case q.delay < q.cfg.Target/2 && q.dropProb < safe || q.ring.bytes <= few:
		return false
	}
	return q.derandomized()
}

// derandomized spaces drops more evenly than independent decisions would: it never drops before the
// probabilities sum to 0.85, and always from 8.5 on (RFC 8033 §5.4).
func (q *pie) derandomized() bool {
	const soonest, latest = 0.85, 8.5
	if q.dropProb == 0 {
		q.accumulated = 0
	}
	q.accumulated += q.dropProb
	switch {
	case q.accumulated < soonest:
		return false
	case q.accumulated >= latest:
		return true
	}
	return q.random.Float64() < q.dropProb
}

func (q *pie) Take(now clock.Time) *Packet {
	q.update(now)
	q.measure(now)
	p := q.dropTail.Take(now)
	if p == nil {
		return nil
	}
	q.sojourn, q.sending = now.Sub(p.entered), len(p.data)
	return p
}

// measure estimates the departure rate from the time that pieThreshold bytes take, while enough
// packets wait (RFC 8033 §5.2). The bytes sent since the last call are those of the previous
// packet.
func (q *pie) measure(now clock.Time) {
	if q.measuring {
		const weight = 4 // weight: DQ_THRESHOLD/2^16, a quarter
		if q.passed += q.sending; q.passed < pieThreshold {
			return
		}
		took := now.Sub(q.since) * pieThreshold / time.Duration(q.passed)
		if q.perCycle == 0 {
			q.perCycle = max(1, took)
		} else {
			q.perCycle = max(1, q.perCycle+(took-q.perCycle)/weight)
		}
	}
	q.measuring, q.since, q.passed = q.ring.bytes >= pieThreshold, now, 0
}

// wait estimates how long a packet that arrives now would wait.
func (q *pie) wait() time.Duration {
	if q.cfg.Timestamps {
		if q.ring.n == 0 {
			return 0
		}
		return q.sojourn
	}
	return time.Duration(int64(q.ring.bytes) * int64(q.perCycle) / pieThreshold)
}

// update catches up on the updates that are due. The queue has not changed since the last packet.
func (q *pie) update(now clock.Time) {
	if q.updated == clock.Never {
		q.updated = now
	}
	for next := q.updated.Add(q.cfg.Update); next <= now; next = next.Add(q.cfg.Update) {
		q.updated = next
		if q.settled() {
			q.updated = now.Add(-(now.Sub(next) % q.cfg.Update))
			return
		}
		q.calculate()
	}
}

// settled reports whether further updates would change nothing.
func (q *pie) settled() bool {
	return q.dropProb == 0 && q.delay == 0 && q.ring.n == 0 && q.burst == q.cfg.Burst
}

// calculate is the update of RFC 8033 §4.2.
func (q *pie) calculate() {
	wait, before := q.wait(), q.delay
	off, change := (wait - q.cfg.Target).Seconds(), (wait - before).Seconds()
	p := scaled(float64(q.cfg.Alpha*off)+float64(q.cfg.Beta*change), q.dropProb)
	const large, steepest = 0.1, 0.02
	if q.dropProb >= large && p > steepest {
		p = steepest // RFC 8033 §5.5 limits the step
	}
	q.dropProb += p
	const decay = 0.98
	if wait == 0 && before == 0 {
		q.dropProb *= decay
	}
	q.dropProb = min(max(q.dropProb, 0), 1)
	q.delay = wait
	q.burst = max(0, q.burst-q.cfg.Update)
	if q.dropProb == 0 && wait < q.cfg.Target/2 && before < q.cfg.Target/2 {
		q.burst = q.cfg.Burst // RFC 8033 §4.4 restores the allowance
	}
}

// scaled reduces the change of a small probability (RFC 8033 §4.2).
func scaled(p, dropProb float64) float64 {
	for _, s := range [...]struct{ below, by float64 }{
		{0.000001, 2048}, {0.00001, 512}, {0.0001, 128}, {0.001, 32}, {0.01, 8}, {0.1, 2},
	} {
		if dropProb < s.below {
			return p / s.by
		}
	}
	return p
}
