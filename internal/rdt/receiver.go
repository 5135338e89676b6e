package rdt

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// maxAcks is the maximum number of queued acknowledgments. If another one is queued, the oldest is
// dropped, because later ones include its information.
const maxAcks = 4096

// Receiver requests objects from one sender and reassembles them. One caller owns it.
type Receiver struct {
	cfg          Config
	codec        codec
	decompressor decompressor
	objects      map[uint16]*object // the requested objects, at most MaxObjects
	wanted       []uint16           // object numbers, in the order of the request

	first, next uint32   // first number of the flow, and first missing number
	seen        []uint64 // one bit for each received number in the window
	acks        acks
	done        []Completion // finished objects for Next, at most MaxObjects
	left        int          // number of unfinished objects
	whole       int          // number of unfinished objects that are complete, but held back
	held        int          // bytes of objects that Next has not returned
	pages       pages

	heard     bool       // a valid packet was received
	requestAt clock.Time // when the request must be repeated
	request   bool       // the request must be sent now
	began     clock.Time
	progress  clock.Time // time of the start or of the last progress
	lingerTo  clock.Time
	err       error
	info      ReceiverInfo
}

// ReceiverInfo is a Receiver's counters.
type ReceiverInfo struct {
	Received   uint64        // number of packets with new data
	Bytes      uint64        // bytes of their payloads, as received
	Compressed uint64        // packets in Received that were compressed
	Requests   uint64        // requests sent
	Acks       uint64        // acknowledgments sent
	Complete   int           // complete objects
	Failed     int           // failed objects
	Held       int           // bytes of objects that Next has not returned
	Took       time.Duration // time from the start until the last object has ended
	Drops      Drops
}

// NewReceiver returns a receiver of the objects in wanted. It requests them at once, unless
// Config.Push is set. It returns ErrConfig, or ErrObject if wanted is empty, has a duplicate, or
// has more than MaxObjects.
func NewReceiver(now clock.Time, cfg Config, wanted ...uint16) (*Receiver, error) {
	return NewReceiverFrom(now, cfg, 0, wanted...)
}

// NewReceiverFrom is like NewReceiver, with the sender's first sequence number. With Config.Push it
// must be 0.
func NewReceiverFrom(
	now clock.Time, cfg Config, sequence uint32, wanted ...uint16,
) (*Receiver, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Push && sequence != 0 {
		return nil, fmt.Errorf("%w: sequence %d: a pushed flow must start at 0", ErrConfig,
			sequence)
	}
	if n := len(wanted); n == 0 || n > MaxObjects {
		return nil, fmt.Errorf("%w: %d objects requested: must be 1 to %d", ErrObject, n,
			MaxObjects)
	}
	r := &Receiver{
		cfg: cfg, codec: newCodec(&cfg), objects: make(map[uint16]*object, len(wanted)),
		wanted: append([]uint16(nil), wanted...), first: sequence, next: sequence,
		seen: make([]uint64, max(1, 1<<bits.Len(uint(cfg.Window-1))/64)),
		left: len(wanted), began: now, progress: now, request: !cfg.Push,
	}
	for _, id := range wanted {
		if r.objects[id] != nil {
			return nil, fmt.Errorf("%w: object %d is requested twice", ErrObject, id)
		}
		r.objects[id] = &object{}
	}
	return r, nil
}

// Input processes a datagram from the sender. It answers each data packet with the next expected
// number. Once the flow has begun it also answers corrupted packets, so that they inform the sender
// as early as reordered ones.
func (r *Receiver) Input(now clock.Time, b []byte) { r.input(now, b, false) }

// InputSound is like Input, but does not verify the checksum of the datagram, which the caller
// knows to be intact.
func (r *Receiver) InputSound(now clock.Time, b []byte) { r.input(now, b, true) }

func (r *Receiver) input(now clock.Time, b []byte, sound bool) {
	if r.Closed() {
		r.info.Drops[DropClosed]++
		return
	}
	p, drop := r.codec.parse(b, sound)
	switch {
	case drop == DropChecksum && r.heard:
		r.acknowledge(&packet{kind: kindAck})
	case drop == dropNone && p.kind != kindData:
		drop = DropKind
	case drop == dropNone:
		drop = r.data(now, &p)
	}
	if drop != dropNone {
		r.info.Drops[drop]++
	}
}

func (r *Receiver) data(now clock.Time, p *packet) Drop {
	r.heard, r.request, r.requestAt = true, false, clock.Never
	if r.left == 0 {
		r.lingerTo = now.Add(r.cfg.Linger)
	}
	var drop Drop
	ahead := int32(p.sequence - r.next)
	switch {
	case ahead >= int32(r.cfg.Window):
		drop = DropOutside
	case ahead < 0 || r.has(p.sequence):
		drop = DropRepeated
	default:
		drop = r.take(now, p)
	}
	ack := packet{kind: kindAck}
	if p.state&stateEcho != 0 && drop != DropOutside {
		ack = packet{kind: kindEcho, arrived: p.sequence, stamp: p.stamp}
	}
	r.acknowledge(&ack)
	return drop
}

// take processes a new packet. Its number counts as used even if the contents are invalid, because
// a retransmission would be the same.
func (r *Receiver) take(now clock.Time, p *packet) Drop {
	r.progress = now
	word, bit := r.bit(p.sequence)
	r.seen[word] |= bit
	drop := r.accept(now, p)
	if drop == dropNone {
		r.info.Received++
		r.info.Bytes += uint64(len(p.payload))
		if p.state&stateCompressed != 0 {
			r.info.Compressed++
		}
	}
	for r.has(r.next) {
		word, bit := r.bit(r.next)
		r.seen[word] &^= bit
		r.next++
	}
	if r.whole == 0 {
		return drop
	}
	if !r.cfg.InOrder {
		r.end(now, p.stream, r.objects[p.stream], nil)
		return drop
	}
	for _, id := range r.wanted {
		if o := r.objects[id]; o.whole && !o.ended && int32(r.next-o.last) > 0 {
			r.end(now, id, o, nil)
		}
	}
	return drop
}

func (r *Receiver) bit(seq uint32) (word uint32, bit uint64) {
	return seq / 64 % uint32(len(r.seen)), 1 << (seq % 64)
}

func (r *Receiver) has(seq uint32) bool {
	word, bit := r.bit(seq)
	return r.seen[word]&bit != 0
}

// end ends an object, with err if it failed.
func (r *Receiver) end(now clock.Time, stream uint16, o *object, err error) {
	if o.whole {
		r.whole--
	}
	c := Completion{Stream: stream, Began: o.began, At: now, Err: err}
	if err == nil {
		c.Data = o.join()
		r.info.Complete++
	} else {
		r.held -= o.end
		r.info.Failed++
	}
	o.ended = true
	r.pages.give(o)
	r.done = append(r.done, c)
	if r.left--; r.left == 0 {
		r.info.Took = now.Sub(r.began)
		r.lingerTo = now.Add(r.cfg.Linger)
	}
}

// Next returns the next ended object, in the order of completion.
func (r *Receiver) Next() (Completion, bool) {
	if len(r.done) == 0 {
		return Completion{}, false
	}
	c := r.done[0]
	r.done = r.done[1:]
	r.held -= len(c.Data)
	return c, true
}

// acknowledge queues an acknowledgment of everything received so far.
func (r *Receiver) acknowledge(p *packet) {
	p.sequence = r.next
	if r.acks.put(*p) {
		r.info.Drops[DropAckQueue]++
	}
}

// Output appends the next packet to b, or returns false if none is due.
func (r *Receiver) Output(now clock.Time, b []byte) ([]byte, bool) {
	if r.Closed() {
		return b, false
	}
	if p, ok := r.acks.take(); ok {
		r.info.Acks++
		return r.codec.append(b, &p), true
	}
	if !r.request {
		return b, false
	}
	r.request, r.requestAt = false, now.Add(r.cfg.Timeout)
	r.info.Requests++
	b, start := r.codec.open(b, &packet{
		kind: kindRequest, state: stateRequest, sequence: r.first, stamp: now,
	})
	for _, id := range r.wanted {
		b = append(b, byte(id>>8), byte(id))
	}
	r.codec.digest.seal(b[start:])
	return b, true
}

// Deadline returns the time for the next call of Advance.
func (r *Receiver) Deadline() clock.Time {
	switch {
	case r.err != nil:
		return clock.Never
	case r.left == 0:
		return r.lingerTo
	}
	return clock.Earliest(r.requestAt, r.progress.Add(r.cfg.Patience))
}

// Advance repeats the request when it is due, ends lingering, and ends the flow after
// Config.Patience without progress.
func (r *Receiver) Advance(now clock.Time) {
	switch {
	case r.err != nil:
	case r.left == 0:
		if r.lingerTo.Due(now) {
			r.lingerTo = clock.Never
		}
	case r.progress.Add(r.cfg.Patience).Due(now):
		r.err = ErrSilent
		for _, id := range r.wanted {
			if o := r.objects[id]; !o.ended {
				r.end(now, id, o, ErrSilent)
			}
		}
		r.lingerTo = clock.Never
	case r.requestAt.Due(now):
		r.request, r.requestAt = true, clock.Never
	}
}

// Done reports whether every object has ended. The receiver still answers packets until it is
// Closed.
func (r *Receiver) Done() bool { return r.left == 0 }

// Closed reports whether the receiver has finished lingering.
func (r *Receiver) Closed() bool { return r.left == 0 && r.lingerTo == clock.Never }

// lastAckCopies is how many times RepeatLastAck repeats the last acknowledgment.
const lastAckCopies = 3

// RepeatLastAck repeats the last acknowledgment of a complete receiver, because some copies may be
// lost. It is for an owner that cannot wait for the end of lingering.
func (r *Receiver) RepeatLastAck() {
	if r.left > 0 || r.Closed() {
		return
	}
	for range lastAckCopies {
		r.acknowledge(&packet{kind: kindAck})
	}
}

// Err returns ErrSilent if the flow failed.
func (r *Receiver) Err() error { return r.err }

// Info returns the receiver's counters.
func (r *Receiver) Info() ReceiverInfo {
	info := r.info
	info.Held = r.held
	return info
}

// acks is the queue of acknowledgments, a ring that grows to maxAcks.
type acks struct {
	ring    []packet
	head, n int
}

// put adds p and reports whether it dropped the oldest.
func (a *acks) put(p packet) (lost bool) {
	if a.n == maxAcks {
		a.head = (a.head + 1) % maxAcks
		a.n--
		lost = true
	}
	if a.n == len(a.ring) {
		grown := make([]packet, max(16, 2*a.n))
		for i := range a.n {
			grown[i] = a.ring[(a.head+i)%a.n]
		}
		a.ring, a.head = grown, 0
	}
	a.ring[(a.head+a.n)%len(a.ring)] = p
	a.n++
	return lost
}

func (a *acks) take() (packet, bool) {
	if a.n == 0 {
		return packet{}, false
	}
	p := a.ring[a.head]
	a.head = (a.head + 1) % len(a.ring)
	a.n--
	return p, true
}
