package observe

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/control"
)

// Interfaces of an observer that are no interface's number.
const (
	AllFaces = -1
	OwnFace  = -2 // lo
)

// SelfFace is what the interface is called on which a node sends to itself.
const SelfFace = "lo"

// Beginning is what is known of a connection when somebody begins to follow it.
type Beginning struct {
	Before Batch // what its recorder has
	// Known: Local and Remote are where its two ends stand; else there is none yet, or it has not
	// been established.
	Known         bool
	Local, Remote capture.Start
}

// Observer is somebody who is shown packets: a capture or a trace. The loop batches up copies,
// which at the end of its turn go to a queue from which a goroutine of the observer's own takes
// them: so the loop never waits, and what is lost on the way out of a turn is known before anybody
// sees the packet.
type Observer struct {
	About control.Capturing
	Iface int // or AllFaces, or OwnFace
	// Faces is how many interfaces there were when it began; 0: as many as there are.
	Faces   int
	Filter  *capture.Filter
	Snaplen int
	Limit   uint64 // packets after which it ends; 0: none
	Glances bool   // it wants to know of connections
	Patient bool   // the loop waits for it, because time waits for the loop: a Clock's
	Flow    *Flow  // the connection that it follows; nil: all that its filter lets pass

	shown   uint64        // the loop's
	turn    Batch         // this turn's; the loop's
	skipped []uint64      // packets of this turn that are only counted, by interface; the loop's
	ended   chan struct{} // closed, by the loop, when it is shown no more

	backlog *Backlog // its lock is that of the rest
	queue   queue
	lost    int     // bytes that were dropped since it read
	gap     uint64  // missed since the last packet of the queue
	missed  uint64  // in all
	counts  []Count // of each interface, and of the node itself, by their number
	ready   chan struct{}
	room    sync.Cond // a Patient observer has read, or has left
	left    bool      // it takes nothing any more
	stalled atomic.Bool
}

// Flow is the connection that an observer follows, once there is one. The loop's: it does not
// change once the observer has seen a segment.
type Flow struct {
	Found bool
	Key   capture.Flow // seen from the left end
	Ours  bool         // which is this node's
	Drops bool         // only what went no further
}

// Count is how many packets of an interface an observer was to see, and missed of them.
type Count struct{ Packets, Missed uint64 }

// Begin is the beginning of what an observer is shown, by a node with so many interfaces. Packets
// wait for it in b. The loop's.
func (o *Observer) Begin(since time.Time, faces int, b *Backlog) {
	o.ready, o.ended = make(chan struct{}, 1), make(chan struct{})
	o.backlog, o.room.L = b, &b.mu
	b.enter(o)
	if o.Faces == 0 {
		o.Faces = faces
	}
	o.counts = make([]Count, o.Faces+1)
	o.About.Since = since
}

// End is the end of it. The loop's.
func (o *Observer) End() {
	o.Settle()
	close(o.ended)
}

// Ended is closed when the observer is shown no more.
func (o *Observer) Ended() <-chan struct{} { return o.ended }

// Shown is how many packets there were. The loop's; anybody's when the observer has ended.
func (o *Observer) Shown() uint64 { return o.shown }

// Sees reports whether an observer looks at an interface.
func (o *Observer) Sees(i int) bool { return o.Iface == AllFaces || o.Iface == i }

// Number is what an interface is counted and written under: behind those that there were when the
// observer began comes the node itself, and then those that are new.
func (o *Observer) Number(i int) int {
	switch {
	case i == OwnFace:
		return o.Faces
	case i < o.Faces:
		return i
	}
	return i + 1
}

// Put batches up a packet, as far as there is room; true: it is the last. The header are its first
// bytes, whole. The loop's.
func (o *Observer) Put(s *Packet, header []byte, pieces [][]byte) (last bool) {
	o.shown++
	last = o.Limit > 0 && o.shown >= o.Limit
	if o.stalled.Load() {
		o.skip(s.Iface)
		return last
	}
	keep := s.Length
	if o.Snaplen > 0 {
		keep = min(keep, o.Snaplen)
	}
	p := &o.turn
	if p.full(keep) {
		o.Settle()
		p = &o.turn
	}
	one := *s
	one.begin = len(p.data)
	if keep <= len(header) {
		p.data = append(p.data, header[:keep]...)
	} else {
		for _, piece := range pieces {
			p.data = append(p.data, piece[:min(len(piece), one.begin+keep-len(p.data))]...)
		}
	}
	one.end = len(p.data)
	p.List = append(p.List, one)
	return last
}

func (o *Observer) skip(iface int) {
	number := o.Number(iface)
	for len(o.skipped) <= number {
		o.skipped = append(o.skipped, 0)
	}
	o.skipped[number]++
}

// mostAmended bounds how far back in a turn a packet is looked for.
const mostAmended = 4096

// Amend marks the packet that left in this turn and was then lost; false: there is none. The
// loop's.
func (o *Observer) Amend(s *Packet, data []byte) bool {
	list := o.turn.List
	for k := len(list) - 1; k >= max(0, len(list)-mostAmended); k-- {
		one := &list[k]
		seen := o.turn.Bytes(one)
		if one.Out && one.Iface == s.Iface && one.Why == "" && one.Length == s.Length &&
			bytes.Equal(head(seen), head(data[:min(len(data), len(seen))])) {
			one.Why = s.Why
			return true
		}
	}
	return false
}

// head is as much of a packet as tells it from others.
func head(packet []byte) []byte { return packet[:min(len(packet), capture.HeaderBytes)] }

// Settle moves a turn's packets to where they are taken. The oldest of the backlog are dropped for
// them if need be. The loop's.
func (o *Observer) Settle() {
	t := &o.turn
	if len(t.List) == 0 && len(o.skipped) == 0 {
		return
	}
	b := o.backlog
	b.mu.Lock()
	for i, n := range o.skipped {
		c := o.count(i)
		c.Packets += n
		o.miss(c, n)
	}
	clear(o.skipped)
	o.skipped = o.skipped[:0]
	if len(t.List) > 0 {
		o.push(t)
	}
	b.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default: // there is a token
	}
}

// push hands a turn's packets on. The backlog is locked.
func (o *Observer) push(t *Batch) {
	b := o.backlog
	if o.left {
		o.turn = t.emptied()
		return
	}
	for o.Patient && !o.left && !o.queue.empty() &&
		(!o.queue.fits(t) || !b.room(t.memory())) {
		o.room.Wait()
	}
	for !o.Patient && !o.queue.empty() && !o.queue.fits(t) {
		o.dropFirst()
	}
	b.room(t.memory())
	t.List[0].Missed += o.gap
	o.gap = 0
	for i := range t.List {
		o.count(o.Number(t.List[i].Iface)).Packets++
	}
	before := o.queue.held
	o.turn = o.queue.push(*t)
	b.note(o.queue.held - before)
}

// dropFirst drops the batch that waits longest. The next packet says how many were dropped before
// it. The backlog is locked.
func (o *Observer) dropFirst() {
	before := o.queue.held
	o.queue.trim(0)
	p := o.queue.drop()
	o.backlog.note(o.queue.held - before)
	o.lost += p.memory()
	if o.lost > stalledBytes {
		o.stalled.Store(true)
	}
	gap := uint64(0)
	for i := range p.List {
		s := &p.List[i]
		o.count(o.Number(s.Iface)).Missed++
		o.missed++
		gap += 1 + s.Missed
	}
	if o.queue.empty() {
		o.gap += gap
	} else {
		o.queue.first().Missed += gap
	}
}

// miss counts packets of an interface that nobody will see.
func (o *Observer) miss(c *Count, packets uint64) {
	c.Missed += packets
	o.missed += packets
	o.gap += packets
}

// count is that of the interface with a number.
func (o *Observer) count(number int) *Count {
	for len(o.counts) <= number {
		o.counts = append(o.counts, Count{})
	}
	return &o.counts[number]
}

// take gives the observer what waits, a batch at a time, for one that it is done with; an empty
// one: nothing does.
func (o *Observer) take(done Batch) Batch {
	b := o.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	before := o.queue.held
	next := o.queue.pop(done)
	b.note(o.queue.held - before)
	o.lost = 0
	o.stalled.Store(false)
	o.room.Signal()
	return next
}

// Leave drops what waits for the observer, for whom the loop waits no more.
func (o *Observer) Leave() {
	b := o.backlog
	b.mu.Lock()
	o.left = true
	b.mu.Unlock()
	b.leave(o)
	o.room.Signal()
}

// Counts are what the observer was shown, by interface.
func (o *Observer) Counts() (faces []Count, missed uint64) {
	o.backlog.mu.Lock()
	defer o.backlog.mu.Unlock()
	return slices.Clone(o.counts), o.missed
}

// Watch gives f what the observer is shown until the observer or ctx ends, or f fails. It lets the
// observer go.
func (o *Observer) Watch(ctx context.Context, taps Taps, f func(*Batch) error) (err error) {
	var p Batch
	for over := false; !over && err == nil; {
		select {
		case <-o.ready:
		case <-o.ended:
			over = true
		case <-ctx.Done():
			over = true
		}
		if over {
			taps.LetGo(o)
		}
		for p = o.take(p); len(p.List) > 0 && err == nil; p = o.take(p) {
			err = f(&p)
		}
	}
	o.Leave()
	taps.LetGo(o)
	return err
}
