package netem

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// RED is random early detection, of Floyd and Jacobson, "Random Early Detection Gateways for
// Congestion Avoidance" (1993), with Floyd's gentle slope (2000). It drops or marks packets with a
// probability that rises with a moving average of the queue: from 0 at Min to MaxP at Max, and to 1
// at twice Max, or at Max if it is not gentle.
type RED struct {
	// Min and Max are thresholds of the average queue length, in bytes, or in packets if InPackets.
	// A zero Max stands for a quarter of the limit in that unit, and a zero Min for a third of Max.
	Min, Max  int
	InPackets bool
	// MaxP is the probability at Max; 0: 0.1.
	MaxP float64
	// Weight is the weight of each arrival in the average; 0: 0.002.
	Weight float64
	// Abrupt disables the gentle slope.
	Abrupt bool
	// Mean is the typical length of a packet in bytes; 0: 1000. RED computes from it how many
	// packets could have left while the link was idle.
	Mean int
	// ECN marks packets instead of dropping them if their transport is ECN-capable (RFC 3168 §5).
	// If the average is above all thresholds, RED drops packets, because marking has not helped.
	ECN bool
	// MarkAll makes ECN mark packets above all thresholds, too. With a Weight of 1, a MaxP of 1 and
	// a Max just above Min, this is the step function of DCTCP's switches (RFC 8257 §3.1).
	MarkAll bool
	// Packets, Bytes and Time limit the queue. A full queue drops arriving packets. Zero means no
	// limit.
	Packets, Bytes int
	Time           time.Duration
}

// These are the defaults.
const (
	redMaxP   = 0.1
	redWeight = 0.002
	redMean   = 1000
)

func (r RED) bound() Bound { return Bound{Packets: r.Packets, Bytes: r.Bytes, Time: r.Time} }

// WithDefaults replaces zeros by the defaults.
func (r RED) WithDefaults() RED {
	r.MaxP, r.Weight = cmp.Or(r.MaxP, redMaxP), cmp.Or(r.Weight, redWeight)
	r.Mean = cmp.Or(r.Mean, redMean)
	if r.Max == 0 {
		r.Max = r.Bytes / 4
		if r.InPackets {
			r.Max = r.Packets / 4
		}
	}
	r.Min = cmp.Or(r.Min, r.Max/3)
	return r
}

// Validate returns an error if the description is invalid.
func (r RED) Validate() error {
	r = r.WithDefaults()
	switch {
	case r.Min < 0 || r.Max <= r.Min:
		return fmt.Errorf("%w: red min %d, max %d: min must be 0 or more, and max above min",
			ErrConfig, r.Min, r.Max)
	case !(r.MaxP > 0 && r.MaxP <= 1):
		return fmt.Errorf("%w: red with probability %v: must be more than 0, up to 1", ErrConfig,
			r.MaxP)
	case !(r.Weight > 0 && r.Weight <= 1):
		return fmt.Errorf("%w: red with weight %v: must be more than 0, up to 1", ErrConfig,
			r.Weight)
	case r.Mean < 0:
		return fmt.Errorf("%w: red with packets of %d bytes: must be positive", ErrConfig, r.Mean)
	}
	return r.bound().Validate()
}

// Start implements Discipline.
func (r RED) Start(s Site) Queue {
	r = r.WithDefaults()
	q := &red{cfg: r, random: s.Random, mark: s.Mark, count: -1, idle: true}
	q.room, q.drop = s.room(r.bound()), s.Drop
	q.typical = max(1, int64(r.Mean+s.Overhead+s.Framing)*bitNanoseconds/max(1, s.Rate))
	return q
}

// red is a RED queue. It uses the names in the paper.
type red struct {
	dropTail
	cfg     RED
	random  *rand.Rand
	mark    func(clock.Time, *Packet) bool
	typical int64 // time in nanoseconds that a typical packet takes: s in the paper

	avg       float64
	count     int // number of packets since the last drop or mark; -1: the average is below Min
	idle      bool
	idleSince clock.Time // start of the idle time: q_time in the paper
}

func (q *red) Take(now clock.Time) *Packet {
	p := q.dropTail.Take(now)
	if q.ring.n == 0 && !q.idle {
		q.idle, q.idleSince = true, now
	}
	return p
}

func (q *red) Put(now clock.Time, p *Packet) {
	q.average(now)
	hit, forced := q.hit()
	if hit {
		q.count = 0
		if forced && !q.cfg.MarkAll || !q.cfg.ECN || !q.mark(now, p) {
			q.drop(now, p, Early)
			return
		}
	}
	if q.dropTail.put(now, p) {
		q.idle = false
	}
}

// average updates the average when a packet arrives. For the time that the queue was empty, the
// average falls as if typical packets had passed.
func (q *red) average(now clock.Time) {
	if q.idle {
		q.avg *= power(1-q.cfg.Weight, now.Sub(q.idleSince).Nanoseconds()/q.typical)
		q.idleSince = now
		return
	}
	length := q.ring.bytes
	if q.cfg.InPackets {
		length = q.ring.n
	}
	// The conversion rounds each product, so that the result is the same on every machine.
	q.avg += float64(q.cfg.Weight * (float64(length) - q.avg))
}

// hit decides whether a packet is dropped or marked. The n-th packet since the last hit is hit with
// the probability p/(1-np), which makes the gaps uniform instead of geometric. forced means that
// the average is above all thresholds.
func (q *red) hit() (hit, forced bool) {
	low, high := float64(q.cfg.Min), float64(q.cfg.Max)
	if q.avg < low {
		q.count = -1
		return false, false
	}
	var p float64
	switch {
	case q.avg < high:
		p = float64(q.cfg.MaxP * ((q.avg - low) / (high - low)))
	case !q.cfg.Abrupt && q.avg < 2*high:
		p = q.cfg.MaxP + float64((1-q.cfg.MaxP)*((q.avg-high)/high))
	default:
		return true, true
	}
	q.count++
	left := 1 - float64(float64(q.count)*p)
	return left <= 0 || q.random.Float64() < p/left, false
}

// power returns x to the n-th power. It uses only multiplication, so the result is the same on
// every machine.
func power(x float64, n int64) float64 {
	y := 1.0
	for ; n > 0 && y > 0; n >>= 1 {
		if n&1 != 0 {
			y *= x
		}
		x *= x
	}
	return y
}
