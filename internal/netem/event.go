package netem

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// EventKind is a kind of event.
type EventKind uint8

// These are the kinds of events.
const (
	// Arrive means that a packet arrived at the link. Packets and Bytes include it, even if it is
	// dropped; its Drop event subtracts it again.
	Arrive EventKind = iota + 1
	// Drop means that a packet was dropped, for the reason in Why. A packet that the loss model
	// drops has used the link, so its Drop follows its Depart.
	Drop
	// Mark means that a packet was marked with Congestion Experienced.
	Mark
	// Serve means that a packet left the queue to be sent.
	Serve
	// Depart means that a packet's last byte left the server. Without a rate, this is the time of
	// its arrival.
	Depart
	// Opportunity means that a link of kind Opportunities had a chance to send, used or not. The
	// Depart events of the packets that use it follow.
	Opportunity
)

// Reason is why a packet was dropped.
type Reason uint8

// These are the reasons.
const (
	// Tail means that the queue had no room for the packet.
	Tail Reason = iota + 1
	// Head means that the queue dropped its oldest packet to make room for a new one.
	Head
	// Early means that active queue management detected congestion, although there was room.
	Early
	// Limit means that MaxPackets or MaxBytes was exceeded.
	Limit
	// Excess means that the policer dropped the packet.
	Excess
	// Model means that the loss model dropped the packet.
	Model
)

// Event is an event of one link.
type Event struct {
	At   clock.Time
	Kind EventKind
	Why  Reason // the reason of a Drop
	// Size is the packet's length in bytes; for an Opportunity, the number of bytes that can leave.
	Size int
	// Sojourn is how long the packet has been in the link.
	Sojourn time.Duration
	// Packets and Bytes are the length of the queue after the event.
	Packets, Bytes int
	// Tag is the packet's tag from Input.
	Tag uint64
	// Data is the packet. It is valid only until the watcher returns.
	Data []byte
}

// Watch makes the link call f with all events from now on, in the order of time. A nil f stops
// this. The event belongs to the link and is valid until f returns. f must not call the link. The
// link reports events when Input or Advance reaches their time.
func (l *Link) Watch(f func(*Event)) {
	l.watch = f
	l.depth.packets, l.depth.bytes = l.Queued()
	l.watchOpportunities(false)
}

// WatchOpportunities is like Watch, but also reports each opportunity of a trace, starting after
// the last event. An idle link then costs as much CPU time as a busy one.
func (l *Link) WatchOpportunities(f func(*Event)) {
	l.watch = f
	l.depth.packets, l.depth.bytes = l.Queued()
	l.watchOpportunities(true)
}

// reporter is a server that can report its opportunities.
type reporter interface {
	// report calls f for each unreported opportunity up to a time, with its bytes.
	report(until clock.Time, f func(at clock.Time, bytes int))
	// skip discards the unreported opportunities up to a time.
	skip(until clock.Time)
}

func (l *Link) watchOpportunities(wanted bool) {
	t, ok := l.server.(reporter)
	l.reporter, l.wantOpportunities = nil, wanted
	if !wanted || !ok || l.watch == nil {
		return
	}
	t.skip(l.reportedAt)
	l.reporter = t
	l.reportOpportunity = func(at clock.Time, bytes int) {
		l.event = Event{
			At: at, Kind: Opportunity, Size: bytes, Packets: l.depth.packets, Bytes: l.depth.bytes,
		}
		l.watch(&l.event)
	}
}

// depth is the length of the queue after the reported events. The queue's own counts change before
// some of its events are reported, so the link counts separately.
type depth struct{ packets, bytes int }

func (d *depth) add(packets, bytes int) { d.packets, d.bytes = d.packets+packets, d.bytes+bytes }

func (l *Link) emit(at clock.Time, kind EventKind, why Reason, p *Packet) {
	switch {
	case l.queue == nil:
	case kind == Arrive:
		l.depth.add(1, len(p.data))
	case kind == Serve, kind == Drop && why != Model:
		l.depth.add(-1, -len(p.data))
	}
	l.reportedAt = at
	l.event = Event{
		At: at, Kind: kind, Why: why, Size: len(p.data), Sojourn: at.Sub(p.entered), Tag: p.tag,
		Packets: l.depth.packets, Bytes: l.depth.bytes, Data: p.data,
	}
	l.watch(&l.event)
}

// dropBuffer returns memory for a packet that was dropped on arrival, so that the watcher can see
// it. It returns nil without a watcher.
func (l *Link) dropBuffer(now clock.Time, why Reason, tag uint64, size int) *Packet {
	if l.watch == nil {
		return nil
	}
	p := &l.dropped
	p.data = slices.Grow(p.data[:0], size)[:size]
	p.tag, p.entered, l.cause = tag, now, why
	return p
}

// emitDropped reports a packet that was dropped on arrival and so was never queued.
func (l *Link) emitDropped(at clock.Time) {
	p := &l.dropped
	l.emit(at, Arrive, 0, p)
	if l.cause == Model {
		l.emit(at, Depart, 0, p)
	}
	l.emit(at, Drop, l.cause, p)
}

func (l *Link) reportUntil(now clock.Time) {
	if l.reporter != nil {
		l.reportedAt = now
		l.reporter.report(now, l.reportOpportunity)
	}
}
