package observe

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/capture"
	"github.com/tidepool-net/tidepool/internal/control"
)

// These are values of Observer.Iface that are not interface numbers.
const (
	AllIfaces = -1
	OwnIface  = -2 // packets from the node to itself (lo)
)

// SelfIface is the name of the interface for packets from a node to itself.
const SelfIface = "lo"

// Beginning is the state of a connection when an observer starts to follow it.
type Beginning struct {
	Before Batch // segments in the connection's recorder
	// Known reports whether Local and Remote are set. They are set once the connection is
	// established.
	Known         bool
	Local, Remote capture.Start
}

// Observer receives copies of packets for a capture or a trace. The loop collects the copies of one
// iteration in a batch and queues the batch at the end of the iteration. A goroutine of the capture
// takes batches from the queue, so the loop never waits for the capture. A packet that the link
// drops in the same iteration is marked before the capture reads it.
type Observer struct {
	About control.Capturing
	Iface int // interface number, AllIfaces or OwnIface
	// Ifaces is the number of interfaces at the start; 0: the number that the node has now.
	Ifaces    int
	Filter    *capture.Filter
	Snaplen   int
	Limit     uint64 // the observation ends after this many packets; 0: no limit
	WithState bool   // observed packets have the state of their connections
	Patient   bool   // the loop waits for the observer; only for a simulated clock
	Flow      *Flow  // the followed connection; nil: all packets that pass Filter

	shown   uint64        // number of packets so far; the loop owns it
	batch   Batch         // packets of this iteration; the loop owns it
	skipped []uint64      // packets of this iteration that are only counted, by interface
	ended   chan struct{} // closed by the loop after the last packet

	backlog *Backlog // its lock guards the fields below
	queue   queue
	lost    int     // bytes dropped since the last read
	gap     uint64  // packets missed since the last packet of the queue
	missed  uint64  // number of all missed packets
	counts  []Count // counts of each interface, indexed by Number
	ready   chan struct{}
	room    sync.Cond // signals that a patient observer has read or left
	left    bool      // the observer takes no more packets
	stalled atomic.Bool
}

// Flow is the connection that an observer follows, once the connection is known. The loop owns it.
// It does not change after the first segment.
type Flow struct {
	Found bool
	Key   capture.Flow // seen from the left end of the ladder
	Ours  bool         // the left end is this node
	Drops bool         // report only dropped packets
}

// Count counts the packets of an interface that an observer asked for, and how many of them it
// missed.
type Count struct{ Packets, Missed uint64 }

// Begin connects the observer to a backlog. faces is the node's number of interfaces. Only the loop
// calls Begin.
func (o *Observer) Begin(since time.Time, faces int, b *Backlog) {
	o.ready, o.ended = make(chan struct{}, 1), make(chan struct{})
	o.backlog, o.room.L = b, &b.mu
	b.enter(o)
	o.Ifaces = cmp.Or(o.Ifaces, faces)
	o.counts = make([]Count, o.Ifaces+1)
	o.About.Since = since
}

// End ends the observation. Only the loop calls it.
func (o *Observer) End() {
	o.Flush()
	close(o.ended)
}

// Shown returns the number of packets so far. Until the observer has ended, only the loop may call
// it.
func (o *Observer) Shown() uint64 { return o.shown }

// Sees reports whether the observer receives the packets of an interface.
func (o *Observer) Sees(i int) bool { return o.Iface == AllIfaces || o.Iface == i }

// Number maps an interface to its number in counters and files. The numbers are assigned first to
// the interfaces that existed at the start, then to the node itself, then to new interfaces.
func (o *Observer) Number(i int) int {
	switch {
	case i == OwnIface:
		return o.Ifaces
	case i < o.Ifaces:
		return i
	}
	return i + 1
}

// Put copies a packet into the batch, or only counts it if the observer is stalled. It reports
// whether it was the observer's last packet. header is the packet's start with all headers. Only
// the loop calls it.
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
	p := &o.batch
	if p.full(keep) {
		o.Flush()
		p = &o.batch
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

// maxMarked bounds how many packets MarkDropped searches.
const maxMarked = 4096

// MarkDropped marks a packet that was sent in this iteration as dropped. It returns false if it
// finds no such packet. Only the loop calls it.
func (o *Observer) MarkDropped(s *Packet, data []byte) bool {
	list := o.batch.List
	for k := len(list) - 1; k >= max(0, len(list)-maxMarked); k-- {
		one := &list[k]
		seen := o.batch.Bytes(one)
		if one.Out && one.Iface == s.Iface && one.Why == "" && one.Length == s.Length &&
			bytes.Equal(head(seen), head(data[:min(len(data), len(seen))])) {
			one.Why = s.Why
			return true
		}
	}
	return false
}

// head returns the part of a packet that MarkDropped compares.
func head(packet []byte) []byte { return packet[:min(len(packet), capture.HeaderBytes)] }

// Flush moves the packets of this iteration to the queue, and drops the oldest packets of the
// backlog if they do not fit. Only the loop calls it.
func (o *Observer) Flush() {
	t := &o.batch
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
	default: // the signal is already set
	}
}

// push queues the packets of an iteration. The caller holds the backlog's lock.
func (o *Observer) push(t *Batch) {
	b := o.backlog
	if o.left {
		o.batch = t.emptied()
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
	o.batch = o.queue.push(*t)
	b.note(o.queue.held - before)
}

// dropFirst drops the oldest batch. The next packet gets the number of dropped packets. The caller
// holds the backlog's lock.
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

// miss counts packets of an interface that the observer misses.
func (o *Observer) miss(c *Count, packets uint64) {
	c.Missed += packets
	o.missed += packets
	o.gap += packets
}

func (o *Observer) count(number int) *Count {
	for len(o.counts) <= number {
		o.counts = append(o.counts, Count{})
	}
	return &o.counts[number]
}

// take returns the next batch. It reuses the memory of a batch that was read. The result is empty
// if no batch is queued.
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

// Leave drops the observer's packets. The loop no longer waits for it.
func (o *Observer) Leave() {
	b := o.backlog
	b.mu.Lock()
	o.left = true
	b.mu.Unlock()
	b.leave(o)
	o.room.Signal()
}

// Counts returns the packets by interface, and the total of missed packets.
func (o *Observer) Counts() (faces []Count, missed uint64) {
	o.backlog.mu.Lock()
	defer o.backlog.mu.Unlock()
	return slices.Clone(o.counts), o.missed
}

// Watch calls f with each batch until the observer or ctx ends, or until f fails. Then it
// disconnects the observer.
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
			taps.Unobserve(o)
		}
		for p = o.take(p); len(p.List) > 0 && err == nil; p = o.take(p) {
			err = f(&p)
		}
	}
	o.Leave()
	taps.Unobserve(o)
	return err
}
