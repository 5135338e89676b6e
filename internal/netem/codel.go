package netem

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// CoDel is the queue of RFC 8289, which measures how long packets have waited. If the wait was
// above Target for a whole Interval, it drops a packet. It drops the next one after Interval, then
// after Interval/√2, Interval/√3 and so on, until a packet has waited for less than Target.
type CoDel struct {
	// Target is the acceptable wait; 0: 5 ms (RFC 8289 §4.3).
	Target time.Duration
	// Interval is how long the wait may exceed Target; 0: 100 ms (RFC 8289 §4.2).
	Interval time.Duration
	// Packets, Bytes and Time limit the queue. A full queue drops arriving packets. Zero means no
	// limit. If all are zero, the limit is 1000 packets, as in Linux.
	Packets, Bytes int
	Time           time.Duration
	// ECN marks packets instead of dropping them if their transport is ECN-capable (RFC 3168 §5).
	ECN bool
}

// These are the defaults.
const (
	codelTarget   = 5 * time.Millisecond
	codelInterval = 100 * time.Millisecond
	codelPackets  = 1000
)

// Validate returns an error if the description is invalid.
func (c CoDel) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Target < 0 || c.Interval < 0:
		return fmt.Errorf("%w: codel target %v, interval %v: both must be positive", ErrConfig,
			c.Target, c.Interval)
	case c.Target >= c.Interval:
		return fmt.Errorf("%w: codel target %v: must be less than the interval of %v",
			ErrConfig, c.Target, c.Interval)
	}
	return c.bound().Validate()
}

func (c CoDel) bound() Bound { return Bound{Packets: c.Packets, Bytes: c.Bytes, Time: c.Time} }

func (c CoDel) withDefaults() CoDel {
	c.Target = cmp.Or(c.Target, codelTarget)
	c.Interval = cmp.Or(c.Interval, codelInterval)
	if c.bound() == (Bound{}) {
		c.Packets = codelPackets
	}
	return c
}

// Start implements Discipline.
func (c CoDel) Start(s Site) Queue {
	c = c.withDefaults()
	q := &codel{}
	q.room = s.room(c.bound())
	q.drop = s.Drop
	q.law = c.law(&s)
	return q
}

func (c CoDel) law(s *Site) codelLaw {
	return codelLaw{target: c.Target, interval: c.Interval, ecn: c.ECN, drop: s.Drop, mark: s.Mark}
}

// codel is a CoDel queue with a drop-tail limit.
type codel struct {
	dropTail
	law   codelLaw
	state codelState
}

func (q *codel) Put(now clock.Time, p *Packet) {
	q.law.largest = max(q.law.largest, len(p.data))
	q.dropTail.Put(now, p)
}

func (q *codel) Take(now clock.Time) *Packet { return q.law.take(now, &q.state, &q.ring) }

// codelLaw is the state that all queues of a discipline share.
type codelLaw struct {
	target, interval time.Duration
	ecn              bool
	drop             func(clock.Time, *Packet, Reason)
	mark             func(clock.Time, *Packet) bool
	largest          int // largest packet so far: a smaller queue drops nothing
}

// codelState is the state of one queue, with the names of RFC 8289 §5.2.
type codelState struct {
	// firstAboveTime is when the first packet is dropped, unless the wait falls below Target
	// earlier. Never means that the wait is below Target.
	firstAboveTime clock.Time
	dropNext       clock.Time
	count          uint32 // drops and marks since dropping began; resume may add earlier ones
	lastCount      uint32 // count when the queue last began to drop
	dropping       bool
}

// take removes the next packet of a queue (RFC 8289 §5.5).
func (c *codelLaw) take(now clock.Time, s *codelState, ring *packetRing) *Packet {
	p, drop := c.dequeue(now, s, ring)
	switch {
	case s.dropping && !drop:
		s.dropping = false
	case s.dropping:
		for now >= s.dropNext && s.dropping {
			s.count++
			if c.marks(now, p) {
				s.dropNext = c.control(s.dropNext, s.count)
				break // the packet was marked and not dropped, so send it
			}
			c.drop(now, p, Early)
			if p, drop = c.dequeue(now, s, ring); drop {
				s.dropNext = c.control(s.dropNext, s.count)
			} else {
				s.dropping = false
			}
		}
	case drop:
		if !c.marks(now, p) {
			c.drop(now, p, Early)
			p, _ = c.dequeue(now, s, ring)
		}
		s.dropping = true
		c.resume(now, s)
	}
	return p
}

// resume sets the drop rate at which dropping starts: the last one, if dropping ended recently (RFC
// 8289 §5.5).
func (c *codelLaw) resume(now clock.Time, s *codelState) {
	const recent = 16 // number of intervals
	delta := s.count - s.lastCount
	s.count = 1
	if delta > 1 && now.Sub(s.dropNext) < recent*c.interval {
		s.count = delta
	}
	s.dropNext = c.control(now, s.count)
	s.lastCount = s.count
}

// control is the control law of RFC 8289 §5.6: the drop rate grows with the square root of the
// number of drops, because then Reno's rate falls linearly with time.
func (c *codelLaw) control(t clock.Time, count uint32) clock.Time {
	return t.Add(time.Duration(float64(c.interval) / math.Sqrt(float64(count))))
}

// dequeue removes the first packet and reports whether packets have waited longer than the target
// for a whole interval (RFC 8289 §5.6).
func (c *codelLaw) dequeue(now clock.Time, s *codelState, ring *packetRing) (p *Packet, drop bool) {
	if ring.n == 0 {
		s.firstAboveTime = clock.Never
		return nil, false
	}
	p = ring.pop()
	switch {
	case now.Sub(p.entered) < c.target || ring.bytes <= c.largest:
		s.firstAboveTime = clock.Never
	case s.firstAboveTime == clock.Never:
		s.firstAboveTime = now.Add(c.interval)
	default:
		drop = now >= s.firstAboveTime
	}
	return p, drop
}

func (c *codelLaw) marks(now clock.Time, p *Packet) bool { return c.ecn && c.mark(now, p) }

// markECN sets Congestion Experienced in the header of a packet whose transport is ECN-capable (RFC
// 3168 §5). It returns false for other packets.
func markECN(b []byte) bool {
	const ecn, tosAt, sumAt, ecn6 = 3, 1, 10, 0x30
	if isIPv6(b) { // IPv6 has no header checksum to update
		capable := b[tosAt]&ecn6 != 0
		if capable {
			b[tosAt] |= ecn6
		}
		return capable
	}
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
