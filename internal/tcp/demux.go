package tcp

import (
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Host is the TCP of one host: every listener and connection, in one owner's
// hands.
type Host struct {
	cfg   Config
	conns map[Tuple]*Conn
	passive
	waits timeWaits
	peers
	all    connList // a map's order would not repeat itself
	recent *Conn    // the connection that the last segment was for

	ready      readyConns
	replies    replies
	deadlines  deadlines
	events     eventList
	acceptable []*Listener
	due        []*Conn // scratch of Advance

	now        clock.Time // of the call in progress
	drops      Drops
	counters   Counters
	challenge  budget
	receivers  receivers
	recoveries recoveries
	lull       time.Duration // after which a silent connection rests: idleTime
	ports      ports
	isn        sequences

	shot Info // scratch of SetProbe's
}

// Event is a set of things that happened to a connection or listener since the
// owner last looked.
type Event uint8

// The events.
const (
	// Readable: Rx grew, or the peer closed its side.
	Readable Event = 1 << iota
	// Writable: Tx has room again.
	Writable
	// Established: the handshake is complete.
	Established
	// Closed: the connection is over, by error (Err) or because both sides have closed.
	Closed
	// Acceptable: a listener has a connection to accept.
	Acceptable
	// Urgent: the peer calls some of what it sends urgent; Conn.Urgent tells how far.
	Urgent
)

// NewHost returns a host without connections.
func NewHost(cfg Config) (*Host, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	h := &Host{
		cfg:   cfg,
		lull:  idleTime,
		conns: map[Tuple]*Conn{},
		passive: passive{
			listeners: map[netip.AddrPort]*Listener{}, listening: map[uint16]int{},
		},
	}
	h.receivers = receivers{cfg: &h.cfg, drops: &h.drops}
	h.recoveries.lossOptions = h.cfg.lossOptions()
	h.waits.init(cfg.Limits.MaxTimeWait)
	h.ports.secret, h.isn.secret = cfg.Secret, cfg.Secret
	return h, nil
}

// Knobs returns the knobs as they are.
func (h *Host) Knobs() Knobs { return h.cfg.Knobs }

// SetKnobs changes the knobs, all or none. A zero means the default.
func (h *Host) SetKnobs(k Knobs) error {
	cfg := h.cfg
	cfg.Knobs = k
	cfg, err := cfg.complete()
	if err == nil {
		h.cfg, h.recoveries.lossOptions = cfg, cfg.lossOptions()
	}
	return err
}

// TimeWait returns how long a connection stays in TIME-WAIT (RFC 9293 §3.4.2).
func (h *Host) TimeWait() time.Duration { return 2 * max(h.cfg.MSL, 0) }

// Input takes one segment or train that arrived at now. It borrows s and its
// payload for the call.
func (h *Host) Input(now clock.Time, s *Segment) {
	h.now = now
	if s.Count == 0 {
		s.Count = 1
	}
	h.counters.SegmentsIn += uint64(s.Count)
	if c := h.recent; c != nil && c.tuple == s.Tuple {
		c.input(now, s)
		return
	}
	if c := h.lookup(now, s.Tuple); c != nil {
		h.recent = c
		c.input(now, s)
		return
	}
	last := h.waits.find(s.Tuple)
	if last != nil && !h.inputTimeWait(now, last, s) {
		return
	}
	if l := h.listener(s.Tuple); l != nil && !s.Foreign {
		l.input(now, s, last)
		return
	}
	if h.take(now, s, last) {
		return
	}
	h.drop(DropNoConnection)
	h.refuse(s)
}

// listener returns who listens on the segment's destination: first on that
// address, then on any.
func (h *Host) listener(t Tuple) *Listener {
	if len(h.listeners) == 0 {
		return nil
	}
	if l := h.listeners[t.Local()]; l != nil {
		return l
	}
	return h.listeners[netip.AddrPortFrom(netip.IPv4Unspecified(), t.LocalPort)]
}

// Listens reports whether a listener has taken a port at an address, or at any if
// the address is unspecified or invalid.
func (h *Host) Listens(local netip.AddrPort) bool {
	a := local.Addr().Unmap()
	if !a.IsValid() || a.IsUnspecified() {
		return h.listening[local.Port()] > 0
	}
	return h.listener(Tuple{LocalAddr: a.As4(), LocalPort: local.Port()}) != nil
}

// Output fills t with the next train to send at now and reports whether there
// was one. Room holds, an outlet, how many segments its link takes now; what
// finds no room stays. Connections take turns, a train each.
func (h *Host) Output(now clock.Time, room []int, t *Train) bool {
	h.now = now
	if h.replies.output(h, room, t) {
		h.counters.SegmentsOut++
		return true
	}
	for range h.ready.by {
		if h.ready.turn++; h.ready.turn >= len(h.ready.by) {
			h.ready.turn = 0
		}
		turn := h.ready.turn
		if turn < len(room) && room[turn] > 0 && h.outputBy(now, room[turn], t) {
			h.counters.SegmentsOut += uint64(t.Segments())
			return true
		}
	}
	return false
}

// Ready reports whether Output may have something.
func (h *Host) Ready() bool {
	if h.replies.n > 0 {
		return true
	}
	for i := range h.ready.by {
		if h.ready.waits(i) {
			return true
		}
	}
	return false
}

// Waits reports whether a connection waits for room at an outlet.
func (h *Host) Waits(outlet int) bool { return h.ready.waits(outlet) }

// outputBy gives the connections of one outlet their turn until one sends.
func (h *Host) outputBy(now clock.Time, room int, t *Train) bool {
	l := &h.ready.by[h.ready.turn]
	for c := l.first; c != nil; c = l.first {
		h.ready.remove(c)
		if c.output(now, room, t) {
			h.ready.push(c)
			return true
		}
		if c.folds() {
			h.fold(c)
			continue
		}
		c.settle(now)
		h.schedule(c) // what it waits for may be a time
	}
	return false
}

// Deadline returns when Advance is to be called, never if no time-out runs.
func (h *Host) Deadline() clock.Time {
	return clock.Earliest(h.deadlines.first(), h.waits.deadline(), h.half.deadline())
}

// Advance does what is due at or before now.
func (h *Host) Advance(now clock.Time) {
	h.now = now
	h.waits.expire(now)
	h.unfoldDue(now)
	// Taken out first, so that a connection whose next deadline is already past waits for the
	// next call instead of holding this one.
	h.due = h.due[:0]
	for h.deadlines.first().Due(now) {
		c, _ := h.deadlines.earliest()
		h.deadlines.remove(c)
		h.due = append(h.due, c)
	}
	for i, c := range h.due {
		h.due[i] = nil
		if c.state == StateClosed || c.state == StateTimeWait {
			continue
		}
		c.advance(now)
		c.touch()
	}
}

// NextEvent returns a connection or listener with events, and clears them. It
// reports false when there is none.
func (h *Host) NextEvent() (*Conn, *Listener, Event, bool) {
	if c := h.events.pop(); c != nil {
		e := c.links.events
		c.links.events = 0
		return c, nil, e, true
	}
	if n := len(h.acceptable); n > 0 {
		l := h.acceptable[n-1]
		h.acceptable = h.acceptable[:n-1]
		l.event = false
		return nil, l, Acceptable, true
	}
	return nil, nil, 0, false
}

// Rerouted looks every path up again, because routes or interfaces changed.
func (h *Host) Rerouted() {
	for c := h.all.first; c != nil; c = c.links.in[inAll].next {
		h.ready.remove(c)
		c.setPath(h.cfg.Route(c.tuple.RemoteAddr))
		h.wake(c)
	}
}

// Unreachable tells the connection that sent sequence number seq what ICMP reports about it. A
// hard error ends an attempt to connect with ErrRefused (RFC 1122 §4.2.3.9).
func (h *Host) Unreachable(now clock.Time, t Tuple, seq uint32, err error, hard bool) {
	c := h.lookup(now, t)
	if c == nil {
		return
	}
	// RFC 5927 §4.1: only a report about something that is in flight can be genuine.
	if w := widen(c.snd.Una, seq); w < c.snd.Una || w >= c.snd.Nxt {
		return
	}
	if hard && !c.state.synchronized() {
		c.fail(now, fmt.Errorf("%w: %w", ErrRefused, err))
		return
	}
	// RFC 1122 §4.2.3.9: a soft error must not abort a connection, but may explain its timeout.
	// RFC 5927 §5.2: to a synchronized connection a hard error is soft, as it may be forged.
	c.doubt(err)
}

// Conns yields every connection that is not in TIME-WAIT. Half-open ones are made whole for it,
// until the next Output.
func (h *Host) Conns() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		for h.half.first != nil {
			h.unfold(h.now, h.half.first)
		}
		for c := h.all.first; c != nil; c = c.links.in[inAll].next {
			c.flags |= flagShown
			if !yield(c) {
				return
			}
		}
	}
}

// wake queues a connection for output and files its deadline.
func (h *Host) wake(c *Conn) {
	h.ready.push(c)
	if c.path.Outlet < 0 {
		c.stranded()
	}
	h.schedule(c)
}

// schedule files the connection's deadline if it is earlier than the filed one;
// a later one is found when the earlier comes due.
func (h *Host) schedule(c *Conn) {
	if due := c.deadline(); due != clock.Never &&
		(c.links.heap < 0 || due < h.deadlines.of(c)) {
		h.deadlines.set(c, due)
	}
}

// insert makes a new connection known.
func (h *Host) insert(c *Conn) {
	h.hook(c)
	h.counters.Opened++
}

// hook enters the connection into the table and the list of all.
func (h *Host) hook(c *Conn) {
	h.conns[c.tuple] = c
	h.all.push(c)
}

// remove forgets a connection that closed or was reduced to a TIME-WAIT.
func (h *Host) remove(c *Conn) {
	if h.conns[c.tuple] != c {
		return
	}
	h.unhook(c)
	c.timers, c.rcv.ack.timer = timers{}, clock.Never
	c.rec.stop()
	if c.links.listener != nil {
		c.links.listener.forget(c)
	}
	h.catch.answered(c)
	if !c.rests() {
		c.rcv.forget()
	}
}

// unhook takes the connection out of whatever the host finds it by.
func (h *Host) unhook(c *Conn) {
	delete(h.conns, c.tuple)
	h.all.remove(c)
	if h.recent == c {
		h.recent = nil
	}
	h.deadlines.remove(c)
	h.ready.remove(c)
}

// abandon ends the half-open connections of a listener that closed.
func (h *Host) abandon(now clock.Time, l *Listener) {
	if l.halfOpen == 0 && !l.deferred {
		return
	}
	for o := h.half.first; o != nil; {
		next := o.next
		if o.listener == l {
			h.unfold(now, o)
		}
		o = next
	}
	for c := h.all.first; c != nil; {
		next := c.links.in[inAll].next
		if c.links.listener == l {
			c.Abort(now)
		}
		c = next
	}
}
