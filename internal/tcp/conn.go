package tcp

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
)

// Conn is one connection: the TCB of RFC 9293 §3.3.1. It belongs to its Host's
// owner; only the two rings may be used from elsewhere.
type Conn struct {
	// Owner is the owner's to use.
	Owner any

	host     *Host
	tuple    Tuple
	state    State
	flags    connFlags
	hs       handshake
	tos, ttl uint8     // ttl zero: the stack's
	err      error     // why it closed, nil for an orderly close; with flagSoft, a doubt
	parked   *timeWait // what is left of it in TIME-WAIT

	snd     sender
	rcv     receiver
	timers  timers
	answers *answers   // to what deserves few; nil: none was given
	keep    *keepalive // nil: it never asks
	stats   stats
	stamps  stamps
	probe   func(*Info)
	links   links
}

// connFlags are a connection's yes-or-no facts.
type connFlags uint8

const (
	flagOrphan   connFlags = 1 << iota // the user let go of it
	flagHalfOpen                       // its listener counts it as half open
	flagShown                          // Conns has shown it: somebody may still hold it
	flagSoft                           // err is an ICMP report that may explain a time-out
	flagAdmitted                       // Admit answered its SYN, the peer has not answered yet
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
	event    *Conn     // the next with events
	listener *Listener // the one that will accept it, until accepted
	accepted *Conn     // next in its accept queue
	heap     int32     // index in the deadline heap, -1 outside
	isReady  bool      // it is in the list inReady
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
	if c.flags.has(flagSoft) {
		return nil
	}
	return c.err
}

// doubt remembers an ICMP report: RFC 1122 §4.2.3.9, a soft error.
func (c *Conn) doubt(err error) {
	c.err = err
	c.flags |= flagSoft
}

// Tx returns the ring that the user writes to.
func (c *Conn) Tx() *buffer.Ring { return c.snd.tx }

// Rx returns the ring that the user reads from.
func (c *Conn) Rx() *buffer.Ring { return c.rcv.rx }

// ReadDone reports whether the peer has closed its side and all that it sent is in Rx.
func (c *Conn) ReadDone() bool { return c.rcv.done() }

// setState moves the connection along one arrow of the transition table.
func (c *Conn) setState(now clock.Time, e event) {
	to, ok := c.state.next(e)
	if !ok {
		panic(fmt.Sprintf("BUG: tcp: %s in %s", eventNames[e], c.state))
	}
	c.state = to
	if to == StateTimeWait || to == StateClosed {
		c.snd.limit.set(now, LimitIdle) // its clocks stop: nothing more is to be done
	}
	switch to {
	case StateEstablished:
		c.established(now)
	case StateFinWait2:
		c.armFinWait2(now)
		c.raise(Writable) // all that was written has been delivered
	case StateTimeWait:
		c.park(now)
		c.raise(Closed | Readable)
	case StateClosed:
		c.host.remove(c)
		c.raise(Closed | Readable | Writable)
	default:
	}
	c.sample(now)
}

// setPath takes a new path to the peer: at first, and when routes change.
func (c *Conn) setPath(p Path) {
	known, until := c.host.peers.mtus.find(c.host.now, c.tuple.RemoteAddr)
	c.snd.path.reroute(p, known, until)
	if p.Outlet >= 0 {
		c.snd.refit()
	}
}

// park reduces the connection to its TIME-WAIT.
func (c *Conn) park(now clock.Time) {
	e := &timeWait{
		tuple: c.tuple, sndNxt: uint32(c.snd.Nxt), rcvNxt: uint32(c.rcv.nxt),
		window: c.rcv.windowField(false), plain: c.hs.has(flagPlain), since: now,
		stamped: c.hs.has(flagStamps), stamps: c.stamps,
	}
	e.edge = uint32(c.rcv.window())
	c.parked = e
	owed := c.rcv.ack.owed > 0 || c.rcv.ack.pending > 0
	c.host.remove(c)
	if owed {
		c.host.replies.ack(now, e)
	}
	c.host.waits.add(now, e)
}

// settled forgets an ICMP report: what was sent has arrived since.
func (c *Conn) settled() {
	if c.flags.has(flagSoft) {
		c.err = nil
		c.flags &^= flagSoft
	}
}

// fail ends the connection with an error.
func (c *Conn) fail(now clock.Time, err error) {
	if c.over() {
		return
	}
	if c.Err() == nil {
		c.err = err
		c.flags &^= flagSoft
	}
	c.setState(now, evDelete)
}

// giveUp ends it for one of the kinds of time-out. RFC 1122 §4.2.3.9: an ICMP
// report on the way there tells the user more than the time-out does.
func (c *Conn) giveUp(now clock.Time, err error) {
	if c.flags.has(flagSoft) {
		err = fmt.Errorf("%w: %w", err, c.err)
	}
	c.fail(now, err)
}

// established makes the connection usable: once the handshake is complete.
func (c *Conn) established(now clock.Time) {
	c.snd.userTimer, c.snd.wait.since = clock.Never, clock.Never
	c.hs.flags &^= flagSynDue
	c.rcv.ack.hurry()
	c.snd.rec.Establish(now, c.rcv.sack, c.hs.has(flagSynAgain))
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

// raise tells the owner that something happened; of a connection that nobody
// has accepted it learns when it does.
func (c *Conn) raise(e Event) {
	if c.links.events == 0 && c.links.listener == nil {
		c.host.events.push(c)
	}
	c.links.events |= e
}

// touch puts the connection back into its host's lists after anything that may
// have changed what it wants to send, or when.
func (c *Conn) touch() {
	if c.over() {
		c.end()
		return
	}
	c.host.wake(c)
}
