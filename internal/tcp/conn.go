package tcp

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Conn is one connection: the TCB of RFC 9293 §3.3.1. Only the owner of its Host may use it, except
// for the two rings, which other goroutines may use too.
type Conn struct {
	// Owner is for the owner's use.
	Owner any

	host     *Host
	tuple    Tuple
	state    State
	flags    connFlags
	hs       handshake
	tos, ttl uint8     // a ttl of zero: the stack's default
	err      error     // why it closed, nil for an orderly close; with connSoft, an ICMP report
	parked   *timeWait // its TIME-WAIT

	snd      sender
	rcv      receiver
	finWait2 clock.Time // when a closed connection stops waiting for the FIN
	idleAt   clock.Time // when an idle connection gives its memory back
	keep     *keepalive // nil: off
	stats    stats
	stamps   stamps
	links    links
}

// connFlags are the boolean properties of a connection.
type connFlags uint8

const (
	connOrphan   connFlags = 1 << iota // the user has called Close
	connHalfOpen                       // its listener counts the connection as half-open
	connShown                          // Conns has yielded it; a caller may hold it
	connSoft                           // err is an ICMP report that may explain a timeout
	connAdmitted                       // Admit answered the SYN, and the peer has not answered yet
)

func (f connFlags) has(g connFlags) bool { return f&g != 0 }

// stats are the counters behind Info.
type stats struct {
	bytesSent                                uint64
	segsOut, segsIn, dataSegsOut, dataSegsIn uint64
	lastAck                                  clock.Time
}

// links are a connection's places in its host's lists.
type links struct {
	in       [numLists]link
	event    *Conn     // the next connection with events
	listener *Listener // the listener that will accept the connection; nil once accepted
	accepted *Conn     // the next connection in the accept queue
	heap     int32     // index in the deadline heap; -1: not in it
	isReady  bool      // the connection is in the list inReady
	events   Event
}

// Tuple returns the connection's addresses and ports.
func (c *Conn) Tuple() Tuple { return c.tuple }

// State returns the connection's state.
func (c *Conn) State() State {
	if c.parked != nil && c.parked.gone {
		return StateClosed
	}
	return c.state
}

// Err returns why the connection closed: nil while it is open and after an orderly close.
func (c *Conn) Err() error {
	if c.flags.has(connSoft) {
		return nil
	}
	return c.err
}

// Tx returns the ring that the user writes to.
func (c *Conn) Tx() *buffer.Ring { return c.snd.tx }

// Rx returns the ring that the user reads from.
func (c *Conn) Rx() *buffer.Ring { return c.rcv.rx }

// ReadDone reports whether the peer has closed its side and all of its data is in Rx.
func (c *Conn) ReadDone() bool { return c.rcv.done() }

func (c *Conn) setState(now clock.Time, e event) {
	to, ok := c.state.next(e)
	if !ok {
		panic(fmt.Sprintf("BUG: tcp: %s in %s", eventNames[e], c.state))
	}
	c.state = to
	if to == StateTimeWait || to == StateClosed {
		c.snd.limit.set(now, LimitIdle) // stop its clocks
	}
	switch to {
	case StateEstablished:
		c.established(now)
	case StateFinWait2:
		if c.rcv.closed && c.snd.closed {
			// RFC 9293 §3.6: the application cannot read the peer's data, so do not wait for its
			// FIN forever.
			c.finWait2 = now.Later(c.host.cfg.FinWait2)
		}
		c.raise(Writable) // all written data has been delivered
	case StateTimeWait:
		c.host.park(now, c)
		c.raise(Closed | Readable)
	case StateClosed:
		c.host.remove(c)
		c.raise(Closed | Readable | Writable)
	default:
	}
	c.sample(now)
}

func (c *Conn) fail(now clock.Time, err error) {
	if c.state.over() {
		return
	}
	if c.Err() == nil {
		c.err = err
		c.flags &^= connSoft
	}
	c.setState(now, evDelete)
}

// giveUp ends the connection after a timeout. If an ICMP report has arrived, the error includes it,
// because it explains the timeout (RFC 1122 §4.2.3.9).
func (c *Conn) giveUp(now clock.Time, err error) {
	if c.flags.has(connSoft) {
		err = fmt.Errorf("%w: %w", err, c.err)
	}
	c.fail(now, err)
}

func (c *Conn) established(now clock.Time) {
	c.snd.Una = c.snd.Nxt
	c.err, c.flags = nil, c.flags&^connSoft
	c.stats.lastAck = now
	c.snd.wait.at, c.snd.wait.since = clock.Never, clock.Never
	c.hs.flags &^= hsSynDue
	c.rcv.ack.quicken()
	c.snd.rec.Establish(now, c.rcv.sack, c.hs.has(hsSynAgain))
	if !c.host.cfg.OptionsOff {
		c.host.peers.rememberPlain(now, c.tuple.RemoteAddr, &c.hs)
	}
	if c.host.cfg.MTUProbing == MTUProbingOn && c.snd.probesMTU() && c.snd.path.startLow(now) {
		c.snd.refit()
	}
	c.host.catch.answered(c)
	c.raise(Established | Writable)
	if c.links.listener != nil {
		c.links.listener.complete(c)
	}
	c.snd.limitBy(now, LimitIdle)
	if c.snd.closed {
		c.setState(now, evClose)
	}
}

// Event is a set of events of a connection or listener since the owner last called NextEvent.
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
	// Urgent: the peer has sent urgent data. Conn.Urgent returns where that data ends.
	Urgent
)

// raise records an event for the owner. The events of a connection wait until the owner accepts it.
func (c *Conn) raise(e Event) {
	if c.links.events == 0 && c.links.listener == nil {
		c.host.events.push(c)
	}
	c.links.events |= e
}

// eventList is a queue of the connections that have events for the owner.
type eventList struct{ first, last *Conn }

func (l *eventList) push(c *Conn) {
	c.links.event = nil
	if l.last == nil {
		l.first = c
	} else {
		l.last.links.event = c
	}
	l.last = c
}

func (l *eventList) pop() *Conn {
	c := l.first
	if c == nil {
		return nil
	}
	l.first = c.links.event
	if l.first == nil {
		l.last = nil
	}
	c.links.event = nil
	return c
}
