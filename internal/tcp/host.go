package tcp

import (
	"fmt"
	"iter"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/recovery"
)

// Host is the TCP layer of one host: its listeners and connections. Only one goroutine may use it.
type Host struct {
	cfg       Config
	knobs     Knobs // the knobs of cfg, without derived times
	conns     connTable
	all       connList // all connections, oldest first
	recent    *Conn    // the connection of the last segment
	half      halfOpens
	timeWaits timeWaits
	listeners listeners
	catch     catch
	peers     peers

	ready      readyConns
	replies    replies
	deadlines  deadlines
	events     eventList
	acceptable []*Listener
	due        []*Conn // connections that Advance processes; reused

	now        clock.Time // time of the call in progress
	drops      Drops
	counters   Counters
	receivers  receivers
	recoveries recovery.Host
	idleTime   time.Duration // silence after which a connection is idle
	ports      ports

	probed Info // argument of the functions of SetProbe; reused
}

// NewHost returns a host without connections.
func NewHost(cfg Config) (*Host, error) {
	h := &Host{
		idleTime: idleTime,
		conns:    connTable{v4: map[key4]*Conn{}, v6: map[Tuple]*Conn{}},
		listeners: listeners{
			byAddr: map[netip.AddrPort]*Listener{}, ports: map[netip.AddrPort]int{},
		},
	}
	if err := h.configure(cfg); err != nil {
		return nil, err
	}
	h.replies = replies{cfg: &h.cfg, drops: &h.drops}
	h.timeWaits = timeWaits{
		cfg: &h.cfg, drops: &h.drops, replies: &h.replies, byTuple: map[Tuple]*timeWait{},
	}
	h.receivers = receivers{cfg: &h.cfg, drops: &h.drops, challenges: challenges{cfg: &h.cfg}}
	h.ports.secret = cfg.Secret
	return h, nil
}

// Knobs returns the current knobs. RTOInitial and DelayedAck are zero if they were derived from
// RTOMin and RTOMax.
func (h *Host) Knobs() Knobs { return h.knobs }

// SetKnobs changes the knobs. If one is invalid, it changes none. A zero means the default.
func (h *Host) SetKnobs(k Knobs) error {
	cfg := h.cfg
	cfg.Knobs = k
	return h.configure(cfg)
}

// configure completes and applies a configuration.
func (h *Host) configure(cfg Config) error {
	full, err := cfg.complete()
	if err == nil {
		h.cfg, h.knobs, h.recoveries.Options = full, full.Knobs, full.recoveryOptions()
		h.knobs.Recovery.RTOInitial, h.knobs.DelayedAck = cfg.Recovery.RTOInitial, cfg.DelayedAck
	}
	return err
}

// TimeWait returns how long a connection stays in TIME-WAIT (RFC 9293 §3.4.2).
func (h *Host) TimeWait() time.Duration { return 2 * max(h.cfg.MSL, 0) }

// Deadline returns when to call Advance; clock.Never if no timer runs.
func (h *Host) Deadline() clock.Time {
	return clock.Earliest(h.deadlines.first(), h.timeWaits.deadline(), h.half.deadline())
}

// Advance runs the timers that are due at now.
func (h *Host) Advance(now clock.Time) {
	h.now = now
	h.timeWaits.expire(now)
	h.restoreDue(now)
	// A connection whose next deadline has already passed waits for the next call.
	h.due = h.due[:0]
	for h.deadlines.first().Due(now) {
		c, _ := h.deadlines.earliest()
		h.deadlines.remove(c)
		h.due = append(h.due, c)
	}
	for i, c := range h.due {
		h.due[i] = nil
		if c.state.over() {
			continue
		}
		c.advance(now)
		c.host.reschedule(c)
	}
}

// Rerouted looks up the path of every connection again. The owner calls it after a change of routes
// or interfaces.
func (h *Host) Rerouted() {
	for c := h.all.first; c != nil; c = c.links.in[inAll].next {
		h.ready.remove(c)
		h.setPath(c, h.cfg.Route(c.tuple.RemoteAddr))
		h.reschedule(c)
	}
}

// setPath sets a connection's path to the peer, and applies the MTU that the host remembers for the
// peer.
func (h *Host) setPath(c *Conn, p Path) {
	known, until := h.peers.mtus.find(h.now, c.tuple.RemoteAddr)
	c.snd.path.v6 = c.tuple.RemoteAddr.Is6()
	c.snd.path.reroute(p, known, until)
	if p.Outlet >= 0 {
		c.snd.updateMSS()
	}
}

// Unreachable reports an ICMP error to the connection that sent sequence number seq. A hard error
// ends an attempt to connect, with ErrRefused (RFC 1122 §4.2.3.9).
func (h *Host) Unreachable(now clock.Time, t Tuple, seq uint32, err error, hard bool) {
	c := h.lookup(now, &t)
	if c == nil {
		return
	}
	// RFC 5927 §4.1: an attacker does not know which sequence numbers are in flight.
	if w := widen(c.snd.Una, seq); w < c.snd.Una || w >= c.snd.Nxt {
		return
	}
	if hard && !c.state.synchronized() {
		c.fail(now, fmt.Errorf("%w: %w", ErrRefused, err))
		return
	}
	// RFC 1122 §4.2.3.9: a soft error does not abort a connection, but explains its timeout. RFC
	// 5927 §5.2: for a synchronized connection every error is soft, because it may be forged.
	c.err, c.flags = err, c.flags|connSoft
}

// Listens reports whether a listener uses a port at an address, or at any address that Listen would
// use for the given one.
func (h *Host) Listens(local netip.AddrPort) bool {
	return h.listeners.conflict(newListener(local))
}

// Accepts reports whether a listener accepts connections to an address and port.
func (h *Host) Accepts(local netip.AddrPort) bool { return h.listeners.find(local) != nil }

// Knows reports whether the host has a connection with that tuple, including TIME-WAIT.
func (h *Host) Knows(t Tuple) bool { return h.has(t) || h.timeWaits.byTuple[t] != nil }

// TimeWaits returns how many connections are in TIME-WAIT.
func (h *Host) TimeWaits() int { return len(h.timeWaits.byTuple) }

// Conns yields every connection that is not in TIME-WAIT. It restores the half-open ones, which
// stay restored until the next Output.
func (h *Host) Conns() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		for h.half.first != nil {
			h.restore(h.now, h.half.first)
		}
		for c := h.all.first; c != nil; c = c.links.in[inAll].next {
			c.flags |= connShown
			if !yield(c) {
				return
			}
		}
	}
}

// has reports whether the host has a connection with that tuple that is not in TIME-WAIT.
func (h *Host) has(t Tuple) bool { return h.conns.find(&t) != nil || h.half.byTuple[t] != nil }

// numConns returns the number of connections, including half-open ones.
func (h *Host) numConns() int { return h.conns.len() + len(h.half.byTuple) }

func (h *Host) full() bool { return h.numConns() >= h.cfg.Limits.MaxConns }

func (h *Host) insert(c *Conn) {
	h.register(c)
	h.counters.Opened++
}

// register adds the connection to the table and to the list of all connections.
func (h *Host) register(c *Conn) {
	h.conns.put(c)
	h.all.push(c)
}

// remove deletes a connection that closed or entered TIME-WAIT.
func (h *Host) remove(c *Conn) {
	if h.conns.find(&c.tuple) != c {
		return
	}
	h.unregister(c)
	c.finWait2, c.idleAt, c.rcv.ack.timer = clock.Never, clock.Never, clock.Never
	if c.keep != nil {
		c.keep.at = clock.Never
	}
	c.snd.stop()
	if c.links.listener != nil {
		c.links.listener.forget(c)
	}
	h.catch.answered(c)
	if !c.snd.rec.Idle() {
		c.rcv.forget()
	}
}

func (h *Host) enterTimeWait(now clock.Time, c *Conn) {
	e := &timeWait{
		tuple: c.tuple, sndNxt: uint32(c.snd.Nxt), rcvNxt: uint32(c.rcv.nxt),
		window: c.rcv.windowField(false), plain: c.hs.has(hsPlain), since: now,
		stamped: c.hs.has(hsStamps), stamps: c.stamps,
	}
	e.edge = uint32(c.rcv.window())
	c.timeWait = e
	owed := c.rcv.ack.owed > 0 || c.rcv.ack.pending > 0
	h.remove(c)
	if owed {
		h.replies.ack(now, e)
	}
	h.timeWaits.add(now, e)
}

// unregister removes the connection from the host's table and lists.
func (h *Host) unregister(c *Conn) {
	h.conns.remove(&c.tuple)
	h.all.remove(c)
	if h.recent == c {
		h.recent = nil
	}
	h.deadlines.remove(c)
	h.ready.remove(c)
}

// Drops returns the drop counts by reason.
func (h *Host) Drops() Drops { return h.drops }

// Counters returns the totals.
func (h *Host) Counters() Counters {
	c := h.counters
	c.Retransmits, c.Refused = h.recoveries.Retransmits, h.replies.refused
	c.ChallengeAcks, c.ChallengesSpared = h.receivers.challenges.sent, h.receivers.challenges.spared
	return c
}

// HalfOpen yields the connections of listeners in SYN-RECEIVED. For a connection that is stored as
// a halfOpen it yields a temporary copy, which is read-only and valid only until the next one.
func (h *Host) HalfOpen() iter.Seq[*Conn] {
	return func(yield func(*Conn) bool) {
		for o := h.half.first; o != nil; o = o.next {
			c := h.rebuild(h.now, o)
			more := yield(c)
			c.freeState()
			h.half.give(c)
			if !more {
				return
			}
		}
		for c := h.all.first; c != nil; c = c.links.in[inAll].next {
			if c.flags.has(connHalfOpen) && !yield(c) {
				return
			}
		}
	}
}

// Find returns the connection with a tuple; nil if there is none, or if it is in TIME-WAIT. For a
// connection that is stored as a halfOpen it returns a temporary copy, which is read-only.
func (h *Host) Find(t Tuple) *Conn {
	if c := h.recent; c != nil && c.tuple.is(&t) {
		return c
	}
	if o := h.half.byTuple[t]; o != nil {
		return h.rebuild(h.now, o)
	}
	return h.conns.find(&t)
}

// Ready reports whether Output may have something to send.
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

func (m *connTable) put(c *Conn) {
	if k, ok := c.tuple.key4(); ok {
		m.v4[k] = c
	} else {
		m.v6[c.tuple] = c
	}
}

func (m *connTable) remove(t *Tuple) {
	if k, ok := t.key4(); ok {
		delete(m.v4, k)
	} else {
		delete(m.v6, *t)
	}
}

func (m *connTable) len() int { return len(m.v4) + len(m.v6) }
