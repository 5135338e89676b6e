package netem

import (
	"fmt"
	"math/rand/v2"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Discipline describes a queue in front of a server.
type Discipline interface {
	// Start makes an empty queue. Packets that it gives up it hands to drop;
	// random is its own.
	Start(drop func(*Packet), random *rand.Rand) Queue
}

// Queue holds the packets that wait for a server.
type Queue interface {
	// Put takes p in, or drops it, or others in its place.
	Put(now clock.Time, p *Packet)
	// Take removes the packet to send next, nil when there is none. It may drop
	// others on the way to it.
	Take(now clock.Time) *Packet
	// Len returns what is waiting.
	Len() (packets, bytes int)
}

// DropTail is the queue that refuses what it has no room for. Limits of zero do
// not limit.
type DropTail struct {
	Packets int
	Bytes   int
}

// Validate reports what is wrong with the description.
func (d DropTail) Validate() error {
	if d.Packets < 0 || d.Bytes < 0 {
		return fmt.Errorf("%w: a queue of %d packets, %d bytes", ErrConfig, d.Packets, d.Bytes)
	}
	return nil
}

// Start implements Discipline.
func (d DropTail) Start(drop func(*Packet), _ *rand.Rand) Queue {
	return &dropTail{limit: d, drop: drop}
}

type dropTail struct {
	limit DropTail
	drop  func(*Packet)
	ring  packetRing
}

func (q *dropTail) Put(_ clock.Time, p *Packet) {
	if q.limit.Packets > 0 && q.ring.n >= q.limit.Packets ||
		q.limit.Bytes > 0 && q.ring.bytes+len(p.data) > q.limit.Bytes {
		q.drop(p)
		return
	}
	q.ring.push(p)
}

func (q *dropTail) Take(clock.Time) *Packet {
	if q.ring.n == 0 {
		return nil
	}
	return q.ring.pop()
}

func (q *dropTail) Len() (packets, bytes int) { return q.ring.n, q.ring.bytes }
