package node

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// duplex is what a connection has of a net.Conn, whatever carries it: two rings, which
// are shared with the loop, and two deadlines.
type duplex struct {
	node *Node
	carrier

	in, out half
	unasked int // bytes read since the loop was told, under in.mu

	// What the loop has told the application.
	established gate        // the peer has answered, or will not
	eof         atomic.Bool // the peer's FIN is behind what rx holds
	closed      atomic.Bool // by Close
	failure     atomic.Pointer[error]
}

// carrier is the protocol beneath a duplex.
type carrier interface {
	// tell has the loop see what the application did.
	tell(what uint32)
	// network is the protocol as errors call it.
	network() string
	Local() netip.AddrPort
	Remote() netip.AddrPort
}

func (d *duplex) init(n *Node, c carrier, rx, tx *buffer.Ring) {
	d.node, d.carrier, d.in.ring, d.out.ring = n, c, rx, tx
}

// initClosed is init for a connection that was never opened.
func (d *duplex) initClosed(c carrier) {
	d.node, d.carrier = Closed(), c
	d.closed.Store(true)
	d.in.closed.Store(true)
	d.out.closed.Store(true)
}

// awaitAnswer waits until the peer has answered, or will not, which is an error as is ctx's
// end; then it aborts the connection.
func (d *duplex) awaitAnswer(ctx context.Context) error {
	select {
	case <-d.established.passed():
	case <-ctx.Done():
		d.Abort()
		return context.Cause(ctx)
	case <-d.node.stopped:
		return net.ErrClosed
	}
	if failure := d.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// half is one direction of a connection, on the application's side.
type half struct {
	mu     sync.Mutex // makes concurrent callers one producer, or one consumer
	ring   *buffer.Ring
	ready  bell // look at the ring again
	by     deadline
	closed atomic.Bool // by the application
	parked atomic.Bool // somebody waits to hear ready
}

// call wakes a Read that waits.
func (d *duplex) call() {
	d.in.ready.ring()
	d.node.leading.call(d)
}

// park waits until ready, which is armed, is heard, or the deadline has passed.
func (h *half) park() {
	h.parked.Store(true)
	select {
	case <-h.ready.heard():
	case <-h.by.wait():
	}
	h.parked.Store(false)
}

// Read reads what has arrived, waiting for at least one byte. It returns
// io.EOF after the peer's FIN.
func (d *duplex) Read(p []byte) (int, error) {
	d.in.mu.Lock()
	defer d.in.mu.Unlock()
	for {
		switch {
		case d.closed.Load():
			return 0, d.opError("read", net.ErrClosed)
		case len(p) == 0:
			return 0, nil
		case d.in.closed.Load():
			return 0, io.EOF // what net.TCPConn answers after its CloseRead
		}
		select {
		case <-d.in.by.wait():
			return 0, d.opError("read", os.ErrDeadlineExceeded)
		default:
		}
		if n := d.take(p); n > 0 {
			return n, nil
		}
		// The loop publishes bytes before it says that they were the last.
		eof, failure := d.eof.Load(), d.failure.Load()
		if n := d.take(p); n > 0 {
			return n, nil
		}
		if eof {
			return 0, io.EOF // all has come; a reset behind the FIN takes nothing back
		}
		if failure != nil {
			return 0, d.opError("read", *failure)
		}
		if d.in.ready.arm() || d.node.leading.lead(d) {
			continue
		}
		d.in.park()
	}
}

// AwaitRead waits until a Read does not wait. Beside it nobody reads: it holds no lock meanwhile,
// and its caller no memory.
func (d *duplex) AwaitRead() error {
	for d.waits() {
		if !d.in.ready.arm() && !d.node.leading.lead(d) {
			d.in.parked.Store(true)
			<-d.in.ready.heard()
			d.in.parked.Store(false)
		}
	}
	if d.closed.Load() {
		return d.opError("read", net.ErrClosed)
	}
	return nil
}

// waits reports whether there is nothing to read, and no reason why there never will be.
func (d *duplex) waits() bool {
	return d.in.ring.Len() == 0 && !d.eof.Load() && d.failure.Load() == nil && !d.closed.Load()
}

// AwaitFailure waits, behind the end of what the peer said, until the connection fails, and returns
// why; or until it is closed here, and returns net.ErrClosed. Beside it nobody reads.
func (d *duplex) AwaitFailure() error {
	for d.failure.Load() == nil && !d.closed.Load() {
		if !d.in.ready.arm() {
			<-d.in.ready.heard()
		}
	}
	return cmp.Or(d.Failed(), d.opError("read", net.ErrClosed))
}

// Failed returns why the connection has failed, without waiting; nil: nothing is known of that.
func (d *duplex) Failed() error { return d.failed("read") }

func (d *duplex) failed(op string) error {
	if failure := d.failure.Load(); failure != nil {
		return d.opError(op, *failure)
	}
	return nil
}

// take reads from the ring and tells the loop when the peer may be waiting
// for the room: the window was half closed, or a quarter of it has opened.
func (d *duplex) take(p []byte) int {
	before := d.in.ring.Len()
	n := d.in.ring.Read(p)
	if n == 0 {
		return 0
	}
	d.unasked += n
	if limit := d.in.ring.Limit(); before >= limit/2 || d.unasked >= limit/4 {
		d.unasked = 0
		d.tell(consumed)
	}
	return n
}

// Write copies p into the send buffer, waiting while that is full. That it
// returns says nothing about delivery.
func (d *duplex) Write(p []byte) (int, error) {
	d.out.mu.Lock()
	defer d.out.mu.Unlock()
	done := 0
	for {
		if d.closed.Load() {
			return done, d.opError("write", net.ErrClosed)
		}
		select {
		case <-d.out.by.wait():
			return done, d.opError("write", os.ErrDeadlineExceeded)
		default:
		}
		if d.out.closed.Load() {
			// RFC 9293 §3.10.2: "connection closing", which the system calls EPIPE.
			return done, d.opError("write", errClosing)
		}
		if failure := d.failure.Load(); failure != nil {
			return done, d.opError("write", *failure)
		}
		if n := d.out.ring.Write(p[done:]); n > 0 {
			done += n
			if n <= smallWrite && d.out.ring.Len() == n {
				d.tell(wroteAlone)
			} else {
				d.tell(wrote)
			}
		}
		if done == len(p) {
			return done, nil
		}
		if d.out.ready.arm() {
			continue
		}
		d.out.park()
	}
}

// CloseWrite sends FIN behind what was written: the peer reads to its end. To do it
// again is no error.
func (d *duplex) CloseWrite() error {
	if d.closed.Load() {
		return d.opError("close", net.ErrClosed)
	}
	if !d.out.closed.Swap(true) {
		d.finishWrites(closeWrite)
	}
	return d.failed("close") // what was written may not have arrived
}

// Abort gives the connection up: nothing that waits is delivered. TCP's peer gets a reset; RCP has
// no packet for that, and its peer notices the silence.
func (d *duplex) Abort() {
	d.closed.Store(true)
	d.out.closed.Store(true)
	d.finishWrites(abort)
}

// finishWrites tells the loop of a close once a Write under way, which would
// still add bytes, has seen that it must stop.
func (d *duplex) finishWrites(how uint32) {
	d.call()
	d.out.ready.ring()
	d.out.mu.Lock()
	d.tell(how)
	d.out.mu.Unlock()
	if how != closeWrite { // behind which Read has its deadline still
		d.in.by.stop()
		d.out.by.stop()
	}
}

// netAddr is an address as the network's programs know it.
func netAddr(network string, a netip.AddrPort) net.Addr {
	if network == "tcp" {
		return net.TCPAddrFromAddrPort(a)
	}
	return net.UDPAddrFromAddrPort(a)
}

// LocalAddr returns a *net.TCPAddr, or a *net.UDPAddr over UDP, of the virtual network.
func (d *duplex) LocalAddr() net.Addr { return netAddr(d.network(), d.Local()) }

// RemoteAddr returns a *net.TCPAddr, or a *net.UDPAddr over UDP, of the virtual network.
func (d *duplex) RemoteAddr() net.Addr { return netAddr(d.network(), d.Remote()) }

// SetDeadline sets both deadlines.
func (d *duplex) SetDeadline(t time.Time) error {
	return cmp.Or(d.SetReadDeadline(t), d.SetWriteDeadline(t))
}

// SetReadDeadline makes Read give up at t; the zero time means never.
func (d *duplex) SetReadDeadline(t time.Time) error { return d.setDeadline(&d.in, t) }

// SetWriteDeadline makes Write give up at t; the zero time means never.
func (d *duplex) SetWriteDeadline(t time.Time) error { return d.setDeadline(&d.out, t) }

func (d *duplex) setDeadline(h *half, t time.Time) error {
	if d.closed.Load() {
		return d.opError("set", net.ErrClosed)
	}
	h.by.set(&d.node.Time, t)
	h.ready.ring() // a call that waits looks at the new deadline
	d.node.leading.call(d)
	return nil
}

func (d *duplex) opError(op string, err error) error {
	return &net.OpError{
		Op: op, Net: d.network(), Source: d.LocalAddr(), Addr: d.RemoteAddr(), Err: err,
	}
}

// wake leaves a token for whoever waits, or will.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
