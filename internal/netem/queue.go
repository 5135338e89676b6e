package netem

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Discipline describes a queue in front of a server.
type Discipline interface {
	// Start makes an empty queue.
	Start(site Site) Queue
}

// Queue holds the packets that wait for a server.
type Queue interface {
	// Put queues p. It may drop p or other packets.
	Put(now clock.Time, p *Packet)
	// Take removes the packet to send next; nil: the queue is empty. It may drop other packets.
	Take(now clock.Time) *Packet
	// Len returns the length of the queue.
	Len() (packets, bytes int)
}

// Site contains what a queue needs from its link.
type Site struct {
	// Drop reports that the queue dropped p, and why. p is not in the queue at that time.
	Drop func(now clock.Time, p *Packet, why Reason)
	// Mark sets Congestion Experienced in a packet; it returns false if the transport is not
	// ECN-capable (RFC 3168 §5).
	Mark func(now clock.Time, p *Packet) bool
	// Random is the queue's own random source.
	Random *rand.Rand
	// Rate is the server's mean rate in bits a second.
	Rate int64
	// Overhead and Framing are what a packet costs the server in addition to its bytes. Only
	// Framing also counts in a queue's limit in bytes.
	Overhead, Framing int
}

// Bound limits a queue's length. Zero means no limit.
type Bound struct {
	Packets int
	Bytes   int
	// Time is how long the server may need at its mean rate to send the queue.
	Time time.Duration
}

// Validate returns an error if the description is invalid.
func (b Bound) Validate() error {
	if b.Packets < 0 || b.Bytes < 0 || b.Time < 0 || b.Time > maxDelay {
		return fmt.Errorf("%w: a queue of %d packets, %d bytes, %v: no value may be negative, "+
			"and the time must be at most %v", ErrConfig, b.Packets, b.Bytes, b.Time, maxDelay)
	}
	return nil
}

// room enforces a Bound at a queue's Site.
type room struct {
	packets, bytes int
	framing        int
	wire           int64 // limit in bytes, including overhead; 0: no limit
	overhead       int
}

func (s *Site) room(b Bound) room {
	r := room{
		packets: b.Packets, bytes: b.Bytes, framing: s.Framing, overhead: s.Overhead + s.Framing,
	}
	if b.Time > 0 {
		r.wire = max(1, bytesIn(s.Rate, b.Time))
	}
	return r
}

// bytesIn returns how many bytes a rate sends in a time, rounded down.
func bytesIn(rate int64, d time.Duration) int64 {
	const second = int64(time.Second)
	whole, part := int64(d)/second, int64(d)%second
	// The products stay below 2^63: a rate is at most mostRate, the time at most maxDelay, and the
	// part a fraction of a second.
	return (rate*whole + rate/second*part + rate%second*part/second) / 8
}

func (r *room) holds(packets, bytes int) bool {
	return (r.packets == 0 || packets <= r.packets) &&
		(r.bytes == 0 || bytes+packets*r.framing <= r.bytes) &&
		(r.wire == 0 || int64(bytes+packets*r.overhead) <= r.wire)
}

// DropTail is the queue that drops arriving packets when it is full. A limit of zero means no
// limit.
type DropTail Bound

// Validate returns an error if the description is invalid.
func (d DropTail) Validate() error { return Bound(d).Validate() }

// Start implements Discipline.
func (d DropTail) Start(s Site) Queue { return &dropTail{room: s.room(Bound(d)), drop: s.Drop} }

type dropTail struct {
	room room
	drop func(clock.Time, *Packet, Reason)
	ring packetRing
}

func (q *dropTail) Put(now clock.Time, p *Packet) { q.put(now, p) }

func (q *dropTail) put(now clock.Time, p *Packet) bool {
	if !q.room.holds(q.ring.n+1, q.ring.bytes+len(p.data)) {
		q.drop(now, p, Tail)
		return false
	}
	q.ring.push(p)
	return true
}

func (q *dropTail) Take(clock.Time) *Packet {
	if q.ring.n == 0 {
		return nil
	}
	return q.ring.pop()
}

func (q *dropTail) Len() (packets, bytes int) { return q.ring.n, q.ring.bytes }

// DropHead is the queue that accepts arriving packets and drops the oldest when it is full, so that
// the sender notices the drop earlier, by the queueing delay. A limit of zero means no limit.
type DropHead Bound

// Validate returns an error if the description is invalid.
func (d DropHead) Validate() error { return Bound(d).Validate() }

// Start implements Discipline.
func (d DropHead) Start(s Site) Queue {
	return &dropHead{dropTail{room: s.room(Bound(d)), drop: s.Drop}}
}

type dropHead struct{ dropTail }

func (q *dropHead) Put(now clock.Time, p *Packet) {
	q.ring.push(p)
	for q.ring.n > 0 && !q.room.holds(q.ring.n, q.ring.bytes) {
		q.drop(now, q.ring.pop(), Head)
	}
}
