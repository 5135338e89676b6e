package tcp

import (
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Host is the TCP of one host: every listener and connection, in one owner's hands.
type Host struct {
	cfg       Config
	conns     map[Tuple]*Conn
	all       connList // a map's order would not repeat itself
	recent    *Conn    // the connection that the last segment was for
	half      halfOpens
	waits     timeWaits
	listeners listeners
	catch     catch
	peers     peers

	ready      readyConns
	replies    replies
	deadlines  deadlines
	events     eventList
	acceptable []*Listener
	due        []*Conn // scratch of Advance

	now        clock.Time // of the call in progress
	drops      Drops
	counters   Counters
	challenges challenges
	receivers  receivers
	recoveries recovery.Host
	lull       time.Duration // after which a silent connection rests: idleTime
	ports      ports

	shot Info // scratch of SetProbe's
}

// Event is a set of things that happened to a connection or listener since the owner last looked.
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
		cfg:       cfg,
		lull:      idleTime,
		conns:     map[Tuple]*Conn{},
		listeners: listeners{byAddr: map[netip.AddrPort]*Listener{}, ports: map[uint16]int{}},
	}
	h.replies = replies{cfg: &h.cfg, drops: &h.drops}
	h.waits = timeWaits{
		cfg: &h.cfg, drops: &h.drops, replies: &h.replies, byTuple: map[Tuple]*timeWait{},
	}
	h.challenges.cfg = &h.cfg
	h.receivers = receivers{cfg: &h.cfg, drops: &h.drops}
	h.recoveries.Options = h.cfg.recoveryOptions()
	h.ports.secret = cfg.Secret
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
		h.cfg, h.recoveries.Options = cfg, cfg.recoveryOptions()
	}
	return err
}

// TimeWait returns how long a connection stays in TIME-WAIT (RFC 9293 §3.4.2).
func (h *Host) TimeWait() time.Duration { return 2 * max(h.cfg.MSL, 0) }

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
		if c.over() {
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

// Listens reports whether a listener has taken a port at an address, or at any if
// the address is unspecified or invalid.
func (h *Host) Listens(local netip.AddrPort) bool { return h.listeners.listens(local) }

// Knows reports whether there is a connection of that tuple, in TIME-WAIT too.
func (h *Host) Knows(t Tuple) bool { return h.has(t) || h.waits.byTuple[t] != nil }

// TimeWaits returns how many connections are in TIME-WAIT.
func (h *Host) TimeWaits() int { return len(h.waits.byTuple) }

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

// lookup returns the connection of a tuple, whole; nil: there is none, but perhaps a TIME-WAIT.
func (h *Host) lookup(now clock.Time, t Tuple) *Conn {
	if c := h.conns[t]; c != nil {
		return c
	}
	if o := h.half.byTuple[t]; o != nil {
		return h.unfold(now, o)
	}
	return nil
}

// has reports whether there is a connection of that tuple, half-open perhaps.
func (h *Host) has(t Tuple) bool { return h.conns[t] != nil || h.half.byTuple[t] != nil }

// known returns how many connections there are, half-open ones too.
func (h *Host) known() int { return len(h.conns) + len(h.half.byTuple) }

// full reports whether there are as many as may be.
func (h *Host) full() bool { return h.known() >= h.cfg.Limits.MaxConns }

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
	c.snd.stop()
	if c.links.listener != nil {
		c.links.listener.forget(c)
	}
	h.catch.answered(c)
	if !c.snd.rec.Resting() {
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

// Drops returns the counts by reason.
func (h *Host) Drops() Drops { return h.drops }

// Counters returns the totals.
func (h *Host) Counters() Counters {
	c := h.counters
	c.Retransmits, c.Refused = h.recoveries.Retransmits, h.replies.refused
	c.ChallengeAcks, c.ChallengesSpared = h.challenges.sent, h.challenges.spared
	return c
}

func (h *Host) drop(d Drop) { h.drops[d]++ }

// HalfOpen yields the connections of listeners in SYN-RECEIVED. What stands for one that is small
// is there until the next is asked for: to be looked at only.
func (h *Host) HalfOpen() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		for o := h.half.first; o != nil; o = o.next {
			c := h.likeness(h.now, o)
			more := yield(c)
			c.end()
			h.half.give(c)
			if !more {
				return
			}
		}
		for c := h.all.first; c != nil; c = c.links.in[inAll].next {
			if c.flags.has(flagHalfOpen) && !yield(c) {
				return
			}
		}
	}
}

// Find returns the connection with these ends, nil if there is none or it is in TIME-WAIT. Of one
// that is half-open it is a likeness: to be looked at, and now.
func (h *Host) Find(t Tuple) *Conn {
	if c := h.recent; c != nil && c.tuple == t {
		return c
	}
	if o := h.half.byTuple[t]; o != nil {
		return h.likeness(h.now, o)
	}
	return h.conns[t]
}
