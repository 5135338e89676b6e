package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// TCP holds the node's TCP connections and listeners.
type TCP struct {
	node      *Node
	conns     map[*Conn]struct{}          // connections of applications; loop only
	listeners map[*tcp.Listener]*Listener // loop only
	touched   atomic.Pointer[Conn]        // list of connections with changes to process
	relays    relays                      // loop only
}

// Dial is like DialFrom. The node chooses the local address and port.
func (t *TCP) Dial(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return t.DialFrom(ctx, netip.AddrPort{}, to)
}

// DialForFile is like Dial, and offers a file's digest (tcp.Sockopts.FileDigest).
func (t *TCP) DialForFile(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	return t.dial(ctx, netip.AddrPort{}, to, true)
}

// DialFrom connects to a virtual address, and waits until the connection is established or ctx is
// done. The node chooses the parts of from that are zero.
func (t *TCP) DialFrom(ctx context.Context, from, to netip.AddrPort) (*Conn, error) {
	return t.dial(ctx, from, to, false)
}

// dial connects. If digest is set, the SYN offers a file's digest.
func (t *TCP) dial(ctx context.Context, from, to netip.AddrPort, digest bool) (*Conn, error) {
	fail := func(err error) (*Conn, error) { return nil, dialError("tcp", from, to, err) }
	if ctx.Err() != nil {
		return fail(context.Cause(ctx)) // nothing has been sent yet
	}
	var c *Conn
	err := t.node.Call(func(s *stack.Stack, now clock.Time) error {
		tc, err := s.DialTCP(now, from, to)
		if err == nil {
			o := tc.Sockopts()
			o.FileDigest = digest
			_ = tc.SetSockopts(now, o) // the options are valid
			c = newConn(t.node, tc)
			t.adopt(c, nil)
		}
		return err
	})
	if err != nil {
		return fail(NetError(err))
	}
	if err := c.awaitAnswer(ctx); err != nil {
		return fail(err)
	}
	return c, nil
}

// Listen accepts connections on a port of one of the node's addresses, or of all. At most backlog
// established connections wait for Accept. Zero means DefaultBacklog.
func (t *TCP) Listen(on netip.AddrPort, backlog int) (*Listener, error) {
	return t.ListenWith(on, ListenOptions{Backlog: backlog})
}

// ListenOptions are the options of a listener.
type ListenOptions struct {
	Backlog    int  // number of connections that may wait for Accept; 0: DefaultBacklog
	FileDigest bool // connections may offer a file's digest
	Announce   bool // the node announces new connections and their ends
	OnlyIPv6   bool // :: stands for IPv6 only, and not for IPv4
	// Screen, if set, is called in a new goroutine for every incoming connection before it is
	// answered. If it returns without a decision, the node forgets the connection, and the client
	// retransmits its SYN. Accept returns none of these connections.
	Screen func(*Caught)
}

// ListenWith is like Listen, with options.
func (t *TCP) ListenWith(on netip.AddrPort, o ListenOptions) (*Listener, error) {
	l := &Listener{sid: -1, announces: o.Announce, screen: o.Screen}
	l.options.FileDigest = o.FileDigest
	backlog := l.init(t.node, "tcp", on, o.Backlog)
	err := NetError(t.node.Call(func(s *stack.Stack, _ clock.Time) (err error) {
		if o.OnlyIPv6 && on.Addr() == netip.IPv6Unspecified() {
			l.tl, err = s.TCP().ListenIPv6(on.Port(), backlog)
		} else {
			l.tl, err = s.ListenTCP(on, backlog)
		}
		if err != nil {
			return err
		}
		l.addr = l.tl.Local()
		_ = l.tl.SetSockopts(l.options) // the options are valid
		l.tl.CountAhead(l.waiting)
		if l.screen != nil {
			l.tl.Defer()
		}
		l.sid = s.Sockets().AddListener(l.tl)
		t.listeners[l.tl] = l
		return nil
	}))
	if err != nil {
		return nil, listenError("tcp", on, err)
	}
	return l, nil
}

// ListenerOf returns the application's listener of tl, or nil. Loop only.
func (t *TCP) ListenerOf(tl *tcp.Listener) *Listener { return t.listeners[tl] }

// adopt adds a connection to the application's connections. Loop only.
func (t *TCP) adopt(c *Conn, l *Listener) {
	n := t.node
	t.conns[c] = struct{}{}
	c.sid = n.stack.Sockets().AddConn(c.tc)
	c.reprobe()
	if l != nil {
		c.established.pass()
		c.announces = l.announces
		if l.announces && n.Watchers.any() {
			n.Watchers.Announce(control.Accepted{
				Listener: l.sid, Socket: n.stack.Sockets().Info(c.sid, 0),
			})
		}
	}
	c.onEvent(0) // data or a FIN may have arrived already
}

// release removes a connection that is gone. Loop only.
func (t *TCP) release(c *Conn) {
	n := t.node
	delete(t.conns, c)
	if c.tc.State() == tcp.StateTimeWait {
		n.stack.Sockets().Retire(c.sid, n.Time.now().Add(n.stack.TCP().TimeWait()))
		return
	}
	n.stack.Sockets().Remove(c.sid)
}

// undelivered reports whether a closed connection has undelivered data. Loop only.
func (t *TCP) undelivered() bool {
	for c := range t.conns {
		if c.closed.Load() && !c.finAcked {
			return true
		}
	}
	return false
}

// close closes all connections and listeners when the node closes. Loop only.
func (t *TCP) close(now clock.Time) {
	for _, l := range t.listeners {
		l.end()
		l.tl.Close(now)
	}
	for c := range t.conns {
		if !c.finAcked {
			c.tc.Abort(now)
		}
		if !c.gone {
			closed := net.ErrClosed
			c.failure.CompareAndSwap(nil, &closed)
			c.wakeReader() // if the FIN is acknowledged, no Abort has woken the reader
		}
	}
}

// boundTo lists the connections and listeners that use one of the addresses. Loop only.
func (t *TCP) boundTo(addrs map[netip.Addr]bool) (list []Bound) {
	for c := range t.node.stack.TCP().Conns() {
		t := c.Tuple()
		if addrs[t.Local().Addr()] && c.State() != tcp.StateClosed {
			list = append(list, Bound{
				fmt.Sprintf("tcp %v to %v", t.Local(), t.Remote()),
				func(now clock.Time) { c.AbortWith(now, tcp.ErrAddressGone) },
			})
		}
	}
	for _, l := range t.listeners {
		if addrs[l.addr.Addr()] && !l.closing.Load() {
			list = append(list, Bound{fmt.Sprintf("tcp %v, listening", l.addr), l.closeNow})
		}
	}
	return list
}

// ConnectBy dials, with the errors of package control.
func ConnectBy(
	ctx context.Context, dial func(context.Context, netip.AddrPort) (*Conn, error),
	addr netip.Addr, port uint16,
) (*Conn, error) {
	to := netip.AddrPortFrom(addr, port)
	if !control.IsHost(addr) || port == 0 {
		return nil, fmt.Errorf("%v: %w: must be the address of a host and a port from 1",
			to, control.ErrUsage)
	}
	c, err := dial(ctx, to)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", to, control.Reason(err))
	}
	return c, nil
}
