package netem

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// EventKind is what happened on a link.
type EventKind uint8

// The kinds of events.
const (
	// Arrive is a packet that came. Packets and Bytes count it as if it were let in: a Drop
	// takes it out again.
	Arrive EventKind = iota + 1
	// Drop is a packet that is no more, Why says the reason. One that the loss model takes
	// has used the link: its Drop comes after its Depart.
	Drop
	// Mark is a packet on which congestion was marked.
	Mark
	// Serve is a packet that leaves the queue because its turn has come.
	Serve
	// Depart is a packet whose last byte has left the server. Without a rate that is when it
	// came.
	Depart
	// Opportunity is one of Opportunities, used or not. What departs by it comes after it.
	Opportunity
)

// Reason is why a packet was dropped.
type Reason uint8

// The reasons.
const (
	// Tail is the queue, which had no room for it.
	Tail Reason = iota + 1
	// Head is the queue, which had no room for a later one.
	Head
	// Early is active queue management, which had room but saw congestion.
	Early
	// Limit is MaxPackets or MaxBytes.
	Limit
	// Excess is the policer.
	Excess
	// Model is the loss model.
	Model
)

// Event is something that happened to one packet.
type Event struct {
	At   clock.Time
	Kind EventKind
	Why  Reason // of a Drop
	// Size is the packet's length in bytes; of an Opportunity how much could leave.
	Size int
	// Sojourn is how long the packet has been in the link.
	Sojourn time.Duration
	// Packets and Bytes are what waits in the queue after the event.
	Packets, Bytes int
	// Tag is what Input was given with the packet.
	Tag uint64
	// Data is the packet, lent until the watcher returns.
	Data []byte
}

// Watch has f told of all that happens from now on, in the order of time; nil: nobody. The
// event is the link's and valid until f returns, and f must not call the link. A link is
// where it was told to be: what is due later than its last Input or Advance has not happened.
func (l *Link) Watch(f func(*Event)) {
	l.watch = f
	l.depth.packets, l.depth.bytes = l.Queued()
	l.watchOpportunities(false)
}

// WatchOpportunities is Watch that also tells of each opportunity of a trace, which makes an
// idle link as much work as a busy one. It tells of those after the last event.
func (l *Link) WatchOpportunities(f func(*Event)) {
	l.watch = f
	l.depth.packets, l.depth.bytes = l.Queued()
	l.watchOpportunities(true)
}

// teller is a server that can tell of its opportunities.
type teller interface {
	// tell calls f for those that were not told yet up to a time, with their bytes.
	tell(until clock.Time, f func(at clock.Time, bytes int))
	// skip has those up to a time not be told.
	skip(until clock.Time)
}

func (l *Link) watchOpportunities(wanted bool) {
	t, can := l.server.(teller)
	l.teller, l.wantOpportunities = nil, wanted
	if !wanted || !can || l.watch == nil {
		return
	}
	t.skip(l.told)
	l.teller = t
	l.tellOpportunity = func(at clock.Time, bytes int) {
		l.event = Event{
			At: at, Kind: Opportunity, Size: bytes, Packets: l.depth.packets, Bytes: l.depth.bytes,
		}
		l.watch(&l.event)
	}
}

// depth is what waits in the queue, as the events so far have it. The queue's own count
// changes in the midst of what they are about.
type depth struct{ packets, bytes int }

func (d *depth) add(packets, bytes int) { d.packets, d.bytes = d.packets+packets, d.bytes+bytes }

func (l *Link) tell(at clock.Time, kind EventKind, why Reason, p *Packet) {
	switch {
	case l.queue == nil:
	case kind == Arrive:
		l.depth.add(1, len(p.data))
	case kind == Serve, kind == Drop && why != Model:
		l.depth.add(-1, -len(p.data))
	}
	l.told = at
	l.event = Event{
		At: at, Kind: kind, Why: why, Size: len(p.data), Sojourn: at.Sub(p.entered), Tag: p.tag,
		Packets: l.depth.packets, Bytes: l.depth.bytes, Data: p.data,
	}
	l.watch(&l.event)
}

// bury returns memory for a packet that came and died, for the watcher to see; nil if there is
// none.
func (l *Link) bury(now clock.Time, why Reason, tag uint64, size int) *Packet {
	if l.watch == nil {
		return nil
	}
	p := &l.dead
	p.data = slices.Grow(p.data[:0], size)[:size]
	p.tag, p.entered, l.cause = tag, now, why
	return p
}

// tellDead tells the watcher of a packet that came and died: it was never in the store.
func (l *Link) tellDead(at clock.Time) {
	p := &l.dead
	l.tell(at, Arrive, 0, p)
	if l.cause == Model {
		l.tell(at, Depart, 0, p)
	}
	l.tell(at, Drop, l.cause, p)
}

// tellUntil tells of the opportunities up to a time.
func (l *Link) tellUntil(now clock.Time) {
	if l.teller != nil {
		l.told = now
		l.teller.tell(now, l.tellOpportunity)
	}
}
