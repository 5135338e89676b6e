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
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// What an application has done to a connection since the loop last looked.
const (
	wrote      uint32 = 1 << iota
	wroteAlone        // a little, and nothing before it is on its way
	consumed
	closeWrite
	closeRead
	closeBoth
	abort
)

// Conn is a TCP connection as an application holds it. It shares two rings
// with the loop, which owns everything else: Read and Write copy and ring, or do
// the loop's work where that sleeps; they never wait for it nor it for them.
type Conn struct {
	duplex
	tc     *tcp.Conn // the loop's
	sid    int       // -1: none
	probes probes
	flight *observe.Recorder // nil: none; the loop's

	todo atomic.Uint32 // what the application did
	next *Conn         // in the node's list of connections with something to do

	// What the loop has told the application.
	delivered  gate         // the peer has acknowledged our FIN
	ended      gate         // the connection is gone
	linger     atomic.Int64 // what SetLinger said, and one second more; zero: nothing
	finAcked   bool         // delivered is open; the loop's
	gone       bool         // ended is open; the loop's
	peerClosed bool         // the operator was told; the loop's
	loud       bool         // and has to be; the loop's
}

func newConn(n *Node, tc *tcp.Conn) *Conn {
	c := &Conn{tc: tc, sid: -1}
	c.init(n, c, tc.Rx(), tc.Tx())
	tc.Owner = c
	return c
}

func (c *Conn) network() string { return "tcp" }

// Local is this end.
func (c *Conn) Local() netip.AddrPort { return c.tc.Tuple().Local() }

// Remote is the other end.
func (c *Conn) Remote() netip.AddrPort { return c.tc.Tuple().Remote() }

// SID is the number that the operator knows the connection by.
func (c *Conn) SID() int { return c.sid }

// CloseRead discards what comes from now on. To do it again is no error.
func (c *Conn) CloseRead() error {
	if c.closed.Load() {
		return c.opError("close", net.ErrClosed)
	}
	if !c.in.closed.Swap(true) {
		c.call()
		c.tell(closeRead)
	}
	return nil
}

// Close closes both directions and returns at once, unless SetLinger said
// otherwise. What was written is still delivered; if data was left unread the
// peer gets a reset (RFC 2525 §2.17).
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

// AwaitDelivery waits until the peer has acknowledged our FIN, and with it
// everything before.
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

// Guard has TCP find out, after half a minute, that a silent peer is gone: who only receives has
// nothing in flight that would time out. It does not wait for the loop.
func (c *Conn) Guard() {
	c.node.Post(func(now clock.Time) {
		if !c.gone {
			o := c.tc.Sockopts()
			o.Keepalive = guarded
			_ = c.tc.SetSockopts(now, o) // they are valid
		}
	})
}

var guarded = tcp.Keepalive{Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// tell adds to what the loop has to see about the connection and rings, or does the loop's work
// where to ring would be most of it.
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
		c.node.leading.lend()
	} else {
		c.node.waiter.Ring()
	}
}

// serve does what the application has asked for. The loop's side of tell.
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
		c.tc.CloseWrite(now)
	}
	if todo&closeBoth != 0 {
		c.tc.Close(now)
	}
}
