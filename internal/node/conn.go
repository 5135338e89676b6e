package node

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/observe"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// These are changes by the application that the loop has not processed yet.
const (
	wrote      uint32 = 1 << iota
	wroteAlone        // a write of at most smallWrite bytes to an empty queue
	consumed
	closeWrite
	closeRead
	closeBoth
	abort
)

// Conn is a TCP connection as an application uses it. It shares two rings with the loop. The loop
// owns everything else. Read and Write copy data, and then wake up the loop or run one of its
// iterations themselves. Neither side waits for a lock of the other.
type Conn struct {
	duplex
	tc     *tcp.Conn // the protocol engine's connection; loop only
	sid    int       // number of the socket; -1: no number
	probes probes
	flight *observe.Recorder // flight recorder; nil: no recorder; loop only

	todo atomic.Uint32 // changes by the application
	next *Conn         // next connection in TCP.touched

	// The loop sets these fields for the application.
	delivered  gate         // opens when the peer has acknowledged the FIN
	ended      gate         // opens when the connection is gone
	linger     atomic.Int64 // value of SetLinger in seconds, plus 1; zero: not set
	finAcked   bool         // delivered is open; loop only
	gone       bool         // ended is open; loop only
	peerClosed bool         // announceEnd has seen the end; loop only
	announces  bool         // the end must be announced; loop only
}

func newConn(n *Node, tc *tcp.Conn) *Conn {
	c := &Conn{tc: tc, sid: -1}
	c.init(n, c, tc.Rx(), tc.Tx())
	tc.Owner = c
	return c
}

func (c *Conn) network() string { return "tcp" }

// Local returns the local address and port.
func (c *Conn) Local() netip.AddrPort { return c.tc.Tuple().Local() }

// Remote returns the peer's address and port.
func (c *Conn) Remote() netip.AddrPort { return c.tc.Tuple().Remote() }

// SID returns the connection's number among the sockets.
func (c *Conn) SID() int { return c.sid }

// CloseRead discards all further data. It may be called again.
func (c *Conn) CloseRead() error {
	if c.closed.Load() {
		return c.opError("close", net.ErrClosed)
	}
	if !c.in.closed.Swap(true) {
		c.wakeReader()
		c.tell(closeRead)
	}
	return nil
}

// Close closes both directions. It returns at once, unless SetLinger says otherwise. Written data
// is still delivered. If received data has not been read, the peer gets a reset (RFC 2525 §2.17).
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return c.opError("close", net.ErrClosed)
	}
	c.out.closed.Store(true)
	if linger := c.linger.Load(); linger > 0 {
		return c.closeLingering(time.Duration(linger-1) * time.Second)
	}
	c.finishWrites(closeBoth)
	return nil
}

// Reset resets a connection toward both the application and the peer, as a middlebox could.
func Reset(c *Conn) error {
	return c.node.Call(func(_ *stack.Stack, now clock.Time) error {
		c.tc.AbortWith(now, tcp.ErrReset)
		return nil
	})
}

// AwaitDelivery waits until the peer has acknowledged the FIN, and so all data.
func (c *Conn) AwaitDelivery(ctx context.Context) error {
	select {
	case <-c.delivered.passed():
		return nil
	case <-c.ended.passed():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-c.delivered.passed():
		return nil
	default:
	}
	if failure := c.failure.Load(); failure != nil {
		return *failure
	}
	return control.ErrReset
}

// Guard sends keep-alives, which detect within half a minute that a silent peer is gone. Without
// data in flight no other timer would detect that. Guard does not wait for the loop.
func (c *Conn) Guard() {
	c.node.Post(func(now clock.Time) {
		if !c.gone {
			o := c.tc.Sockopts()
			o.Keepalive = guarded
			_ = c.tc.SetSockopts(now, o) // the options are valid
		}
	})
}

var guarded = tcp.Keepalive{Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// tell adds to the connection's todo and rings the doorbell. After a small write it runs an
// iteration instead, because waking up the loop would cost more than sending.
func (c *Conn) tell(what uint32) {
	for {
		old := c.todo.Load()
		if c.todo.CompareAndSwap(old, old|what) {
			if old == 0 {
				c.node.TCP.push(c)
			}
			break
		}
	}
	if what == wroteAlone {
		c.node.leading.runIteration()
	} else {
		c.node.waiter.Ring()
	}
	c.node.Time.settle()
}

// push adds a connection to the list of those with something to do.
func (t *TCP) push(c *Conn) {
	for {
		head := t.touched.Load()
		c.next = head
		if t.touched.CompareAndSwap(head, c) {
			return
		}
	}
}

// serve executes the requests of applications on their connections.
func (t *TCP) serve(now clock.Time) {
	c := t.touched.Swap(nil)
	for c != nil {
		next := c.next
		c.next = nil
		c.serve(now, c.todo.Swap(0)) // from here on, push may add c again
		c = next
	}
}

// serve executes the requests of the application. Loop only.
func (c *Conn) serve(now clock.Time, todo uint32) {
	if c.gone {
		return
	}
	if todo&(wrote|wroteAlone) != 0 {
		c.tc.Wrote(now)
	}
	if todo&consumed != 0 {
		c.tc.Consumed(now)
	}
	if todo&abort != 0 {
		c.tc.Abort(now)
		return
	}
	if todo&closeRead != 0 {
		c.tc.CloseRead(now)
	}
	if todo&closeWrite != 0 {
		_ = c.tc.CloseWrite(now)
	}
	if todo&closeBoth != 0 {
		c.tc.Close(now)
	}
}

func netAddr(network string, a netip.AddrPort) net.Addr {
	if network == "tcp" {
		return net.TCPAddrFromAddrPort(a)
	}
	return net.UDPAddrFromAddrPort(a)
}

// LocalAddr returns a *net.TCPAddr of the virtual network, or a *net.UDPAddr if the protocol uses
// UDP.
func (d *duplex) LocalAddr() net.Addr { return netAddr(d.network(), d.Local()) }

// RemoteAddr returns a *net.TCPAddr of the virtual network, or a *net.UDPAddr if the protocol uses
// UDP.
func (d *duplex) RemoteAddr() net.Addr { return netAddr(d.network(), d.Remote()) }
