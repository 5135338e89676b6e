package tcp

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// State is a connection's state, RFC 9293 §3.3.2.
type State uint8

// The eleven states.
const (
	StateClosed State = iota
	StateListen
	StateSynSent
	StateSynReceived
	StateEstablished
	StateFinWait1
	StateFinWait2
	StateCloseWait
	StateClosing
	StateLastAck
	StateTimeWait
	numStates
)

var stateNames = [numStates]string{
	"CLOSED", "LISTEN", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "FIN-WAIT-1",
	"FIN-WAIT-2", "CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT",
}

// String returns the RFC's name of the state.
func (s State) String() string { return nameOf(stateNames[:], s) }

// nameOf returns the name of an enumeration's value, or "?" for an unknown value.
func nameOf[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "?"
}

// synchronized reports whether both ends know each other's sequence numbers
// (RFC 9293 §3.5.1, group 3).
func (s State) synchronized() bool { return s >= StateEstablished }

func (s State) over() bool { return s == StateClosed || s == StateTimeWait }

// maySend reports whether the user may still send (RFC 9293 §3.10.2).
func (s State) maySend() bool { return s == StateEstablished || s == StateCloseWait }

// mayReceive reports whether the peer may still send data (RFC 9293 §3.10.7.4, seventh step).
func (s State) mayReceive() bool {
	return s == StateEstablished || s == StateFinWait1 || s == StateFinWait2
}

// event is an event that moves a connection from one state to another.
type event uint8

const (
	evOpen     event = iota // active OPEN
	evListen                // passive OPEN
	evSYN                   // a SYN arrived that does not acknowledge ours
	evSYNACK                // a SYN arrived that acknowledges ours
	evACKOfSYN              // our SYN is acknowledged
	evClose                 // CLOSE: our FIN is queued
	evFIN                   // the peer's FIN and all data before it arrived
	evACKOfFIN              // our FIN is acknowledged
	evTimeout               // the 2 MSL timeout or another limit of the state has expired
	evDelete                // reset, abort or timeout: delete the TCB
	numEvents
)

var eventNames = [numEvents]string{
	"open", "listen", "SYN", "SYN,ACK", "ACK of SYN", "close", "FIN", "ACK of FIN", "timeout",
	"delete",
}

// impossible marks an event that cannot happen in a state.
const impossible = numStates

// transitions is the state diagram of RFC 9293 §3.3.2, figure 5, as a table:
//
//	CLOSED --open--> SYN-SENT --SYN,ACK--> ESTABLISHED --close--> FIN-WAIT-1
//	CLOSED --listen--> LISTEN --SYN--> SYN-RECEIVED --ACK of SYN--> ESTABLISHED
//	SYN-SENT --SYN--> SYN-RECEIVED                   (simultaneous open)
//	ESTABLISHED --FIN--> CLOSE-WAIT --close--> LAST-ACK --ACK of FIN--> CLOSED
//	FIN-WAIT-1 --ACK of FIN--> FIN-WAIT-2 --FIN--> TIME-WAIT --timeout--> CLOSED
//	FIN-WAIT-1 --FIN--> CLOSING --ACK of FIN--> TIME-WAIT
//
// A FIN in SYN-RECEIVED leads to CLOSE-WAIT directly (§3.10.7.4, eighth step).
var transitions = [numStates][numEvents]State{
	StateClosed: row(on{evOpen, StateSynSent}, on{evListen, StateListen},
		on{evDelete, StateClosed}),
	StateListen: row(on{evSYN, StateSynReceived}, on{evDelete, StateClosed}),
	StateSynSent: row(on{evSYN, StateSynReceived}, on{evSYNACK, StateEstablished},
		on{evDelete, StateClosed}),
	StateSynReceived: row(on{evACKOfSYN, StateEstablished}, on{evFIN, StateCloseWait},
		on{evClose, StateFinWait1}, on{evDelete, StateClosed}),
	StateEstablished: row(on{evClose, StateFinWait1}, on{evFIN, StateCloseWait},
		on{evDelete, StateClosed}),
	StateFinWait1: row(on{evACKOfFIN, StateFinWait2}, on{evFIN, StateClosing},
		on{evDelete, StateClosed}),
	StateFinWait2: row(on{evFIN, StateTimeWait}, on{evTimeout, StateClosed},
		on{evDelete, StateClosed}),
	StateCloseWait: row(on{evClose, StateLastAck}, on{evDelete, StateClosed}),
	StateClosing:   row(on{evACKOfFIN, StateTimeWait}, on{evDelete, StateClosed}),
	StateLastAck:   row(on{evACKOfFIN, StateClosed}, on{evDelete, StateClosed}),
	StateTimeWait:  row(on{evTimeout, StateClosed}, on{evDelete, StateClosed}),
}

// on is one arrow of the diagram: the event, and the state that it leads to.
type on struct {
	event event
	to    State
}

func row(arrows ...on) [numEvents]State {
	var r [numEvents]State
	for i := range r {
		r[i] = impossible
	}
	for _, a := range arrows {
		r[a.event] = a.to
	}
	return r
}

// next returns the state after e. It reports false if e cannot happen in s.
func (s State) next(e event) (State, bool) {
	to := transitions[s][e]
	return to, to != impossible
}

func (c *Conn) setState(now clock.Time, e event) {
	to, ok := c.state.next(e)
	if !ok {
		panic(fmt.Sprintf("BUG: tcp: %s in %s", eventNames[e], c.state))
	}
	c.state = to
	if to == StateTimeWait || to == StateClosed {
		c.snd.limit.set(now, LimitIdle) // end the current limit's time
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
		c.host.enterTimeWait(now, c)
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
	c.snd.rec.Establish(now, c.rcv.sack, c.hs.has(hsSynResent))
	if !c.host.cfg.OptionsOff {
		c.host.peers.rememberPlain(now, c.tuple.RemoteAddr, &c.hs)
	}
	if c.host.cfg.MTUProbing == MTUProbingOn && c.snd.probesMTU() && c.snd.path.startLow(now) {
		c.snd.updateMSS()
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
