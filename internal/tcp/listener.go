package tcp

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Listener answers SYNs for one port (passive OPEN).
type Listener struct {
	host    *Host
	local   netip.AddrPort
	dual    bool // listens on all addresses of both families; local has the IPv6 address
	backlog int
	// halfOpen counts the connections in SYN-RECEIVED, queued the connections that wait for Accept.
	halfOpen, queued int
	first, last      *Conn
	options          Sockopts
	event            bool       // the listener is in the host's event list
	cookieAt         clock.Time // when the listener last sent a cookie
	noRoomAt         clock.Time // when the listener last had no room for a returned cookie
	closed           bool
	deferred         bool       // set by Defer
	ahead            func() int // set by CountAhead; may be nil
}

type listeners struct {
	byAddr map[netip.AddrPort]*Listener
	ports  map[netip.AddrPort]int // number of listeners by port, with the key of anywhere
}

// find returns the listener for a segment's destination address, or else the listener for all
// addresses.
func (q *listeners) find(at netip.AddrPort) *Listener {
	if l := q.byAddr[at]; l != nil {
		return l
	}
	return q.byAddr[anywhere(at)]
}

// anywhere returns the unspecified address of the same family, with the port.
func anywhere(at netip.AddrPort) netip.AddrPort {
	if at.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), at.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), at.Port())
}

// newListener returns a listener without a host, for an address as Listen documents it.
func newListener(local netip.AddrPort) *Listener {
	a := local.Addr().Unmap()
	l := &Listener{dual: !a.IsValid() || a == netip.IPv6Unspecified()}
	if l.dual {
		a = netip.IPv6Unspecified()
	}
	l.local = netip.AddrPortFrom(a, local.Port())
	return l
}

// places returns the keys of the listener in byAddr.
func (l *Listener) places() []netip.AddrPort {
	if l.dual {
		any4 := netip.AddrPortFrom(netip.IPv4Unspecified(), l.local.Port())
		return []netip.AddrPort{any4, l.local}
	}
	return []netip.AddrPort{l.local}
}

// conflict reports whether another listener uses an address and port of l.
func (q *listeners) conflict(l *Listener) bool {
	return slices.ContainsFunc(l.places(), func(at netip.AddrPort) bool {
		return at.Addr().IsUnspecified() && q.ports[at] > 0 || q.find(at) != nil
	})
}

func (q *listeners) add(l *Listener) {
	for _, at := range l.places() {
		q.byAddr[at] = l
		q.ports[anywhere(at)]++
	}
}

func (q *listeners) remove(l *Listener) {
	for _, at := range l.places() {
		delete(q.byAddr, at)
		if q.ports[anywhere(at)]--; q.ports[anywhere(at)] == 0 {
			delete(q.ports, anywhere(at))
		}
	}
}

// Local returns the address and port of the listener. The address may be unspecified.
func (l *Listener) Local() netip.AddrPort { return l.local }

// Queued returns how many connections wait for Accept.
func (l *Listener) Queued() int {
	if l.ahead == nil {
		return l.queued
	}
	return l.queued + l.ahead()
}

// Backlog returns the upper limit of Queued.
func (l *Listener) Backlog() int { return l.backlog }

// CountAhead adds f's result to Queued. f returns how many connections the owner has accepted
// before the application asked for them, so that the owner's queue does not enlarge the backlog.
func (l *Listener) CountAhead(f func() int) { l.ahead = f }

// Defer holds SYNs until the owner calls Host.Admit, Reject or Ignore. NextCaught returns them. So
// the owner can connect to a server first, and refuse the connections that the server refuses. The
// unanswered SYNs of all deferring listeners count together. At the backlog, or at maxEager, the
// host answers SYNs with cookies, and NextCaught returns the connections that these establish.
func (l *Listener) Defer() { l.deferred = true }

// Accept returns the next established connection. It reports false if none waits.
func (l *Listener) Accept() (*Conn, bool) {
	c := l.first
	if c == nil {
		return nil, false
	}
	l.first = c.links.accepted
	if l.first == nil {
		l.last = nil
	}
	c.links.accepted = nil
	c.links.listener = nil
	l.queued--
	if c.links.events != 0 {
		l.host.events.push(c)
	}
	return c, true
}

// Close stops listening. It resets half-open connections and those that wait for Accept.
func (l *Listener) Close(now clock.Time) {
	if l.closed {
		return
	}
	l.closed = true
	l.host.listeners.remove(l)
	for {
		c, ok := l.Accept()
		if !ok {
			break
		}
		c.Abort(now)
	}
	l.resetHalfOpen(now)
}

// backlogged reports whether the accept queue holds backlog connections; Linux allows one more. If
// it does, the listener drops SYNs, and ACKs that would complete a handshake, as Linux does. The
// peer or the host then retransmits the SYN or SYN-ACK. SynBacklog bounds the half-open
// connections.
func (l *Listener) backlogged() bool {
	if l.deferred {
		return l.host.catch.opened >= l.backlog
	}
	return l.Queued() >= l.backlog
}

// full reports whether the listener has reached its limit of handshakes.
func (l *Listener) full() bool {
	if l.deferred {
		return l.host.catch.unanswered() >= l.backlog
	}
	return l.halfOpen >= l.host.cfg.Limits.SynBacklog
}

// complete moves a half-open connection to the accept queue, or to the host's catch if the listener
// defers.
func (l *Listener) complete(c *Conn) {
	c.flags &^= connHalfOpen
	l.halfOpen--
	if l.deferred {
		syn := Segment{Tuple: c.tuple}
		l.host.catch.keep(caughtSYN{segment: syn, listener: l, conn: c})
		return
	}
	l.queued++
	if l.last == nil {
		l.first = c
	} else {
		l.last.links.accepted = c
	}
	l.last = c
	if !l.event {
		l.event = true
		l.host.acceptable = append(l.host.acceptable, l)
	}
}

// forget removes a closed half-open connection from the count. A connection that fails in the
// accept queue stays there, and Accept returns it with its error, as in other TCPs.
func (l *Listener) forget(c *Conn) {
	if c.flags.has(connHalfOpen) {
		c.flags &^= connHalfOpen
		l.halfOpen--
	}
}

func (l *Listener) resetHalfOpen(now clock.Time) {
	h := l.host
	if l.halfOpen == 0 && !l.deferred {
		return
	}
	for o := h.half.first; o != nil; {
		next := o.next
		if o.listener == l {
			h.restore(now, o)
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
