package node

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// What an application has done to a connection since the loop last looked.
const (
	wrote uint32 = 1 << iota
	consumed
	closeWrite
	closeRead
	closeBoth
	abort
)

// Conn is a TCP connection as an application holds it. It shares two rings
// with the loop, which owns everything else: Read and Write copy and ring, they
// never wait for the loop's work nor it for theirs.
type Conn struct {
	node  *Node
	tc    *tcp.Conn // the loop's
	local netip.AddrPort
	peer  netip.AddrPort
	sid   int // -1: none

	in, out half
	unasked int // bytes read since the loop was told, under in.mu
	probes  probes

	todo atomic.Uint32 // what the application did
	next *Conn         // in the node's list of connections with something to do

	// What the loop has told the application.
	established chan struct{}
	delivered   chan struct{} // closed when the peer has acknowledged our FIN
	ended       chan struct{} // closed when the connection is gone
	eof         atomic.Bool   // the peer's FIN is behind what rx holds
	failure     atomic.Pointer[error]
	closed      atomic.Bool  // by Close
	linger      atomic.Int64 // what SetLinger said, and one second more; zero: nothing
	opened      bool         // established has been closed; the loop's
	finAcked    bool         // delivered has been closed; the loop's
	gone        bool         // ended has been closed; the loop's
	peerClosed  bool         // the operator was told; the loop's
	loud        bool         // and has to be; the loop's
}

// half is one direction of a connection, on the application's side.
type half struct {
	mu     sync.Mutex // makes concurrent callers one producer, or one consumer
	ring   *buffer.Ring
	ready  chan struct{} // a token: look at the ring again
	by     deadline
	closed atomic.Bool // by the application
}

func (h *half) init(r *buffer.Ring) {
	h.ring, h.ready = r, make(chan struct{}, 1)
	h.by.init()
}

func newConn(n *Node, tc *tcp.Conn) *Conn {
	t := tc.Tuple()
	c := &Conn{
		node: n, tc: tc, sid: -1,
		local:       netip.AddrPortFrom(netip.AddrFrom4(t.LocalAddr), t.LocalPort),
		peer:        netip.AddrPortFrom(netip.AddrFrom4(t.RemoteAddr), t.RemotePort),
		established: make(chan struct{}), delivered: make(chan struct{}),
		ended: make(chan struct{}),
	}
	c.in.init(tc.Rx())
	c.out.init(tc.Tx())
	c.in.by.clock, c.out.by.clock = n.cfg.Clock, n.cfg.Clock
	tc.Owner = c
	return c
}

// Read reads what has arrived, waiting for at least one byte. It returns
// io.EOF after the peer's FIN.
func (c *Conn) Read(p []byte) (int, error) {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	for {
		switch {
		case c.closed.Load():
			return 0, c.opError("read", net.ErrClosed)
		case len(p) == 0:
			return 0, nil
		case c.in.closed.Load():
			return 0, io.EOF // what net.TCPConn answers after its CloseRead
		}
		select {
		case <-c.in.by.wait():
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		default:
		}
		if n := c.take(p); n > 0 {
			return n, nil
		}
		// The loop publishes bytes before it says that they were the last.
		eof, failure := c.eof.Load(), c.failure.Load()
		if n := c.take(p); n > 0 {
			return n, nil
		}
		if eof {
			return 0, io.EOF // all has come; a reset behind the FIN takes nothing back
		}
		if failure != nil {
			return 0, c.opError("read", *failure)
		}
		select {
		case <-c.in.ready:
		case <-c.in.by.wait():
		}
	}
}

// take reads from the ring and tells the loop when the peer may be waiting
// for the room: the window was half closed, or a quarter of it has opened.
func (c *Conn) take(p []byte) int {
	before := c.in.ring.Len()
	n := c.in.ring.Read(p)
	if n == 0 {
		return 0
	}
	c.unasked += n
	if limit := c.in.ring.Limit(); before >= limit/2 || c.unasked >= limit/4 {
		c.unasked = 0
		c.tell(consumed)
	}
	return n
}

// Write copies p into the send buffer, waiting while that is full. That it
// returns says nothing about delivery.
func (c *Conn) Write(p []byte) (int, error) {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	done := 0
	for {
		if c.closed.Load() {
			return done, c.opError("write", net.ErrClosed)
		}
		select {
		case <-c.out.by.wait():
			return done, c.opError("write", os.ErrDeadlineExceeded)
		default:
		}
		if c.out.closed.Load() {
			// RFC 9293 §3.10.2: "connection closing", which the system calls EPIPE.
			return done, c.opError("write", errClosing)
		}
		if failure := c.failure.Load(); failure != nil {
			return done, c.opError("write", *failure)
		}
		if n := c.out.ring.Write(p[done:]); n > 0 {
			done += n
			c.tell(wrote)
		}
		if done == len(p) {
			return done, nil
		}
		select {
		case <-c.out.ready:
		case <-c.out.by.wait():
		}
	}
}

// CloseWrite sends FIN behind what was written: the peer reads to its end. To do it
// again is no error.
func (c *Conn) CloseWrite() error {
	if c.closed.Load() {
		return c.opError("close", net.ErrClosed)
	}
	if !c.out.closed.Swap(true) {
		c.finishWrites(closeWrite)
	}
	if failure := c.failure.Load(); failure != nil {
		return c.opError("close", *failure) // what was written may not have arrived
	}
	return nil
}

// CloseRead discards what comes from now on. To do it again is no error.
func (c *Conn) CloseRead() error {
	if c.closed.Load() {
		return c.opError("close", net.ErrClosed)
	}
	if !c.in.closed.Swap(true) {
		wake(c.in.ready)
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

// Abort resets the connection: nothing that waits is delivered.
func (c *Conn) Abort() {
	c.closed.Store(true)
	c.out.closed.Store(true)
	c.finishWrites(abort)
}

// finishWrites tells the loop of a close once a Write under way, which would
// still add bytes, has seen that it must stop.
func (c *Conn) finishWrites(how uint32) {
	wake(c.in.ready)
	wake(c.out.ready)
	c.out.mu.Lock()
	c.tell(how)
	c.out.mu.Unlock()
	if how != closeWrite { // behind which Read has its deadline still
		c.in.by.stop()
		c.out.by.stop()
	}
}

// keepalive has TCP find out whether a silent peer is still there.
func (c *Conn) keepalive(k tcp.Keepalive) {
	c.node.post(func(now clock.Time) {
		if !c.gone {
			c.tc.SetKeepalive(now, k)
		}
	})
}

// LocalAddr returns a *net.TCPAddr of the virtual network.
func (c *Conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local) }

// RemoteAddr returns a *net.TCPAddr of the virtual network.
func (c *Conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.peer) }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	return firstError(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline makes Read give up at t; the zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	c.in.by.set(t)
	wake(c.in.ready) // a Read that waits looks at the new deadline
	return nil
}

// SetWriteDeadline makes Write give up at t; the zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	c.out.by.set(t)
	wake(c.out.ready)
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{
		Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err,
	}
}

// tell adds to what the loop has to see about the connection and rings.
func (c *Conn) tell(what uint32) {
	for {
		old := c.todo.Load()
		if c.todo.CompareAndSwap(old, old|what) {
			if old == 0 {
				c.node.push(c)
			}
			break
		}
	}
	c.node.waiter.Ring()
}

// serve does what the application has asked for. The loop's side of tell.
func (c *Conn) serve(now clock.Time, todo uint32) {
	if c.gone {
		return
	}
	if todo&wrote != 0 {
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

// wake leaves a token for whoever waits, or will.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
