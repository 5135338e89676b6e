package examine

import (
	"bytes"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// inbox is the receiving half of a Run in real time: a clock, and the packets that the examiner has
// not read yet.
type inbox struct {
	epoch time.Time
	queue chan Arrival
	ended <-chan struct{} // closed when the subject has ended; nil: the subject cannot end
	late  int             // number of stalls at the start
}

func newInbox() inbox {
	const packets = 8192 // as in a socket buffer, further packets are lost
	return inbox{
		epoch: time.Now(), queue: make(chan Arrival, packets), late: stalls.begin(),
	}
}

// Now implements Run.
func (b *inbox) Now() clock.Time { return clock.Time(time.Since(b.epoch)) + 1 }

// put queues a copy of a packet from the subject.
func (b *inbox) put(link int, packet []byte) {
	select {
	case b.queue <- Arrival{At: b.Now(), Link: link, Data: bytes.Clone(packet)}:
	default: // the queue is full: the packet is lost
	}
}

// Receive implements Run.
func (b *inbox) Receive(until clock.Time) (Arrival, bool) {
	select {
	case a := <-b.queue:
		return a, true
	default:
	}
	timer := time.NewTimer(until.Sub(b.Now()))
	defer timer.Stop()
	select {
	case a := <-b.queue:
		return a, true
	case <-timer.C:
	case <-b.ended:
	}
	return Arrival{}, false
}

// stalled reports whether the examiner has been late since the start.
func (b *inbox) stalled() bool { return stalls.now() > b.late }

// close stops counting stalls.
func (b *inbox) close() { stalls.end() }
