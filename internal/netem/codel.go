package netem

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// CoDel is the queue of RFC 8289: it looks at how long packets have waited. When that
// was above Target for a whole Interval it drops the first, and goes on dropping, the
// next after Interval/√2, then Interval/√3, until a packet has waited for less.
type CoDel struct {
	// Target is the wait that is all right; 0: 5 ms (RFC 8289 §4.2).
	Target time.Duration
	// Interval is how long the wait may be above it; 0: 100 ms (RFC 8289 §4.3).
	Interval time.Duration
	// Packets and Bytes bound the queue, which drops at its tail then. Zero does not
	// limit, but if both are zero it is 1000 packets, as in Linux.
	Packets, Bytes int
	// ECN has packets marked instead of dropped if their sender understands the mark
	// (RFC 3168 §5).
	ECN bool
}

// What zeros mean.
const (
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
	codelPackets  = 1000
)

// Validate reports what is wrong with the description.
func (c CoDel) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Target < 0 || c.Interval < 0:
		return fmt.Errorf("%w: codel target %v, interval %v", ErrConfig, c.Target, c.Interval)
	case c.Target >= c.Interval:
		return fmt.Errorf("%w: codel target %v: want less than the interval of %v",
			ErrConfig, c.Target, c.Interval)
	}
	return DropTail{Packets: c.Packets, Bytes: c.Bytes}.Validate()
}

func (c CoDel) withDefaults() CoDel {
	if c.Target == 0 {
		c.Target = codelTarget
	}
	if c.Interval == 0 {
		c.Interval = codelInterval
	}
	if c.Packets == 0 && c.Bytes == 0 {
		c.Packets = codelPackets
	}
	return c
}

// Start implements Discipline.
func (c CoDel) Start(drop func(*Packet), _ *rand.Rand) Queue {
	c = c.withDefaults()
	return &codel{
		cfg: c, dropTail: dropTail{limit: DropTail{Packets: c.Packets, Bytes: c.Bytes}, drop: drop},
	}
}

// codel is RFC 8289 §5.2's queue, whose state has the RFC's names.
type codel struct {
	dropTail
	cfg CoDel

	firstAboveTime clock.Time // when a drop is due unless the wait sinks; never: it is low
	dropNext       clock.Time
	count          uint32 // drops since dropping began
	lastCount      uint32 // count when dropping began the last time
	dropping       bool
	largest        int // packet seen: a queue of no more than that is no queue
	marked         uint64
}

// Marked returns how many packets were marked instead of dropped.
func (q *codel) Marked() uint64 { return q.marked }

// Put implements Queue.
func (q *codel) Put(now clock.Time, p *Packet) {
	q.largest = max(q.largest, len(p.data))
	q.dropTail.Put(now, p)
}

// Take implements Queue: RFC 8289 §5.5.
func (q *codel) Take(now clock.Time) *Packet {
	p, drop := q.dequeue(now)
	switch {
	case q.dropping && !drop:
		q.dropping = false
	case q.dropping:
		for now >= q.dropNext && q.dropping {
			q.count++
			if q.mark(p) {
				q.dropNext = q.controlLaw(q.dropNext)
				break // the packet lives, so it is the one to send
			}
			q.drop(p)
			if p, drop = q.dequeue(now); drop {
				q.dropNext = q.controlLaw(q.dropNext)
			} else {
				q.dropping = false
			}
		}
	case drop:
		if !q.mark(p) {
			q.drop(p)
			p, _ = q.dequeue(now)
		}
		q.dropping = true
		q.resume(now)
	}
	return p
}

// resume sets the rate of drops with which dropping begins: where it ended, if that was
// not long ago (RFC 8289 §5.5).
func (q *codel) resume(now clock.Time) {
	const recent = 16 // intervals
	delta := q.count - q.lastCount
	q.count = 1
	if delta > 1 && now.Sub(q.dropNext) < recent*q.cfg.Interval {
		q.count = delta
	}
	q.dropNext = q.controlLaw(now)
	q.lastCount = q.count
}

// controlLaw is RFC 8289 §5.3: drops come faster with the square root of their number,
// for that makes a Reno's rate fall in proportion to time.
func (q *codel) controlLaw(t clock.Time) clock.Time {
	return t.Add(time.Duration(float64(q.cfg.Interval) / math.Sqrt(float64(q.count))))
}

// dequeue takes the first packet and tells whether it has waited too long for too long
// (RFC 8289 §5.4).
func (q *codel) dequeue(now clock.Time) (p *Packet, drop bool) {
	if p = q.dropTail.Take(now); p == nil {
		q.firstAboveTime = clock.Never
		return nil, false
	}
	switch {
	case now.Sub(p.entered) < q.cfg.Target || q.ring.bytes <= q.largest:
		q.firstAboveTime = clock.Never
	case q.firstAboveTime == clock.Never:
		q.firstAboveTime = now.Add(q.cfg.Interval)
	default:
		drop = now >= q.firstAboveTime
	}
	return p, drop
}

// mark sets Congestion Experienced, if the queue may and the packet can.
func (q *codel) mark(p *Packet) bool {
	if !q.cfg.ECN || !markECN(p.data) {
		return false
	}
	q.marked++
	return true
}

// markECN sets Congestion Experienced in the header of a packet whose transport is
// ECN-capable (RFC 3168 §5); false: it is not.
func markECN(b []byte) bool {
	const ecn, tosAt, sumAt = 3, 1, 10
	if ipHeaderLen(b) == 0 || b[tosAt]&ecn == 0 {
		return false
	}
	was := uint16(b[0])<<8 | uint16(b[tosAt])
	b[tosAt] |= ecn
	sum := checksum.Update(uint16(b[sumAt])<<8|uint16(b[sumAt+1]), was,
		uint16(b[0])<<8|uint16(b[tosAt]))
	b[sumAt], b[sumAt+1] = byte(sum>>8), byte(sum)
	return true
}
