package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Conn is one connection: the TCB of RFC 9293 §3.3.1. Only the owner of its Host may use it,
// except for the two rings, which other goroutines may use too.
type Conn struct {
	// Owner is a value of the host's owner. The host stores it and does not use it.
	Owner any

	host     *Host
	tuple    Tuple
	state    State
	flags    connFlags
	hs       handshake
	tos, ttl uint8     // of outgoing packets; a zero ttl means the stack's default
	err      error     // why the connection failed; with connSoft, an ICMP report
	timeWait *timeWait // the state in TIME-WAIT; otherwise nil

	snd      sender
	rcv      receiver
	finWait2 clock.Time // when a connection that the user closed stops waiting for the FIN
	idleAt   clock.Time // when the connection frees memory if it is still idle
	keep     *keepalive // nil: off
	stats    stats
	stamps   stamps
	links    links
}

// connFlags are the boolean properties of a connection.
type connFlags uint8

const (
	connOrphan   connFlags = 1 << iota // the user has called Close
	connHalfOpen                       // the listener counts the connection as half-open
	connShown                          // Conns has yielded the connection to a caller
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

// links are a connection's positions in the host's lists.
type links struct {
	in       [numLists]link
	event    *Conn     // the next connection with events
	listener *Listener // the listener that will accept the connection; nil once accepted
	accepted *Conn     // the next connection in the accept queue
	heap     int32     // index in the deadline heap; -1: none
	isReady  bool      // the connection is in the list inReady
	events   Event
}

// deadline returns when the connection's next timer expires.
func (c *Conn) deadline() clock.Time {
	first := min(c.rcv.ack.timer.Order(), c.snd.deadline(), c.finWait2.Order(), c.idleAt.Order())
	if c.keep != nil {
		first = min(first, c.keep.at.Order())
	}
	return clock.Time(first + 1)
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

// An idle connection frees the state that recovery and the receiver need only while data is in
// flight. Every call that may send or receive data begins with leaveIdle. Output calls idleIfQuiet
// when nothing is left to send.

// leaveIdle allocates the state that enterIdle freed.
func (c *Conn) leaveIdle() {
	if c.snd.rec.Idle() {
		c.snd.rec.LeaveIdle(c.host.now)
		c.rcv.leaveIdle()
	}
}

func (r *receiver) leaveIdle() {
	if q := r.shared; len(q.spare) == 0 {
		r.reassembly = new(reassembly)
	} else {
		n := len(q.spare) - 1
		r.reassembly, q.spare[n], q.spare = q.spare[n], nil, q.spare[:n]
	}
	r.reassembly.head, r.reassembly.ooo.Max = r.rx.Head(), r.shared.cfg.Limits.MaxReceiveRanges
}

// idleIfQuiet makes a connection idle if it has nothing to do, and has carried no data at all or
// none for a while.
func (c *Conn) idleIfQuiet(now clock.Time) {
	if c.snd.rec.Idle() || !c.snd.quiet() || c.wants() || !c.rcv.quiet() {
		return
	}
	if c.stats.bytesSent == 0 && c.rcv.bytes == 0 || c.trim(now) {
		c.enterIdle()
	}
}

// wants reports whether the connection has something to send, now or later.
func (c *Conn) wants() bool {
	return c.hs.has(hsSynDue) || c.rcv.ack.owed > 0 || c.keep.probeDue() || c.snd.wants()
}

// quiet reports whether the receiver holds no out-of-order data and owes the peer no
// acknowledgment.
func (r *receiver) quiet() bool {
	return r.ack.owed == 0 && r.ack.pending == 0 && r.reassembly.held == 0 &&
		!r.reassembly.reports()
}

// idleTime is how long a connection keeps buffer memory after its last data.
const idleTime = time.Second

// trim frees the memory of empty rings and returns true if the connection has carried no data for a
// while. Otherwise it sets the idle timer.
func (c *Conn) trim(now clock.Time) bool {
	if now.Sub(max(c.snd.rec.LastSent, c.rcv.lastDataAt)) < c.host.idleTime {
		if c.idleAt == clock.Never {
			c.idleAt = now.Later(c.host.idleTime)
		}
		return false
	}
	c.snd.tx.TrimConsumer()
	if c.rcv.reassembly.ooo.Len() == 0 {
		c.rcv.rx.TrimProducer()
	}
	return true
}

// enterIdle frees the state that only data in flight needs, and keeps what later transfers need.
func (c *Conn) enterIdle() {
	c.snd.rec.EnterIdle()
	c.rcv.freeReassembly()
	c.idleAt = clock.Never
}

// freeState frees what enterIdle frees, and the rings' unused memory, when the connection is over.
func (c *Conn) freeState() {
	c.snd.rec.End()
	c.snd.tx.TrimConsumer()
	c.rcv.rx.TrimProducer() // data after a gap will never be published
	c.rcv.freeReassembly()
}

// maxSpare is how many unused reassembly states the host keeps for reuse.
const maxSpare = 64

func (r *receiver) freeReassembly() {
	if q := r.reassembly; q != nil {
		*q, r.reassembly = reassembly{}, nil
		if len(r.shared.spare) < maxSpare {
			r.shared.spare = append(r.shared.spare, q)
		}
	}
}
