package node

import (
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/stack"
)

const (
	firstRelay = 1 << 20 // tokens of devices are smaller
	relayChunk = 64 << 10
	relayReads = 4 // chunks that an iteration reads from one socket
)

// relays are the relays of a node. Loop only.
type relays struct {
	node    *Node
	byConn  map[*Conn]*Relay
	byToken map[int]*Relay
	next    int
	chunk   []byte // memory of one read
	output  bool   // the stack may have something to send
}

// Relay relays data between a connection and a stream socket of this machine. The loop copies the
// data, so no goroutine must wake up for it. Only the loop uses the fields.
//
// A FIN closes one direction. If one end fails, the data that it sent before is delivered, and the
// other end is reset, even after a FIN. If the other end accepts no data for the stall time, it is
// reset without that data.
type Relay struct {
	node   *Node
	conn   *Conn
	waiter *epollWaiter
	fd     int
	token  int
	count  func(in bool, n int)
	stall  time.Duration
	pieces [][]byte

	readable      bool          // the socket may have data
	full          bool          // the socket accepts no data
	finFromSocket bool          // the socket's FIN has been passed on
	finToSocket   bool          // the connection's FIN has been passed on
	broken        syscall.Errno // error of writing to the socket
	failure       syscall.Errno // pending error of the socket
	moved         uint64        // number of bytes moved in both directions
	stalling      bool          // a timer checks whether data moves

	ended chan struct{}
	ofFD  bool // err is the socket's error
	err   error
}

// StartRelay relays between the connection and a connected, nonblocking socket, which the relay
// closes. Only Abort may be called on the connection afterward. StartRelay returns false if the
// node cannot wait for sockets. The caller then copies the data itself. The loop calls count with
// the number of bytes that it has read from the socket (in) or written to it.
func StartRelay(
	c *Conn, fd int, stall time.Duration, count func(in bool, n int),
) (*Relay, bool) {
	w, ok := c.node.waiter.(*epollWaiter)
	if !ok {
		return nil, false
	}
	r := &Relay{
		node: c.node, conn: c, waiter: w, fd: fd, count: count, stall: stall, readable: true,
		ended: make(chan struct{}),
	}
	err := c.node.Call(func(_ *stack.Stack, now clock.Time) error {
		return c.node.TCP.relays.add(r, now)
	})
	return r, err == nil
}

// Wait waits until both directions have ended and returns the first error. ofFD says that the error
// is the socket's.
func (r *Relay) Wait() (ofFD bool, err error) {
	select {
	case <-r.ended:
	case <-r.node.stopped:
		select {
		case <-r.ended:
		default: // the loop has ended, so it no longer uses the relay
			r.closeFD(true)
			return false, net.ErrClosed
		}
	}
	return r.ofFD, r.err
}

// pending reports whether relays have written to the stack since the last call of drained.
func (rs *relays) pending() bool { return rs.output }

// drained notes that the stack's output is being sent.
func (rs *relays) drained() { rs.output = false }

func (rs *relays) add(r *Relay, now clock.Time) error {
	if rs.byConn == nil {
		rs.node = r.node
		rs.byConn, rs.byToken = map[*Conn]*Relay{}, map[int]*Relay{}
		rs.chunk = make([]byte, relayChunk)
	}
	rs.next++
	r.token = firstRelay + rs.next%firstRelay
	if err := r.waiter.Add(r.fd, r.token); err != nil {
		return err
	}
	rs.byConn[r.conn], rs.byToken[r.token] = r, r
	r.run(now)
	return nil
}

// ready handles an event of a socket. It reports whether the token belongs to a relay.
func (rs *relays) ready(token int) bool {
	if token < firstRelay {
		return false
	}
	if r := rs.byToken[token]; r != nil { // the relay may have ended
		r.full, r.readable = false, true
		if r.finFromSocket || r.conn.out.ring.Free() == 0 { // reading does not show the error here
			r.fail(socketError(r.fd))
		}
		r.run(rs.node.Time.now())
	}
	return true
}

// event handles an event of a connection.
func (rs *relays) event(c *Conn, now clock.Time) {
	if r := rs.byConn[c]; r != nil {
		r.run(now)
	}
}

// socketError returns a socket's pending error, or 0.
func socketError(fd int) syscall.Errno {
	code, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	return resetBy(syscall.Errno(code))
}

// resetBy converts the error of a reset: Linux reports EPIPE for a reset after a FIN.
func resetBy(errno syscall.Errno) syscall.Errno {
	if errno == unix.EPIPE {
		return unix.ECONNRESET
	}
	return errno
}

func (r *Relay) fail(errno syscall.Errno) {
	if errno != 0 && r.failure == 0 {
		r.failure = errno
	}
}

// run copies what it can, and ends the relay when nothing is left to copy.
func (r *Relay) run(now clock.Time) {
	r.node.TCP.relays.output = true
	r.toSocket(now)
	r.fromSocket(now)
	failure := r.conn.failure.Load()
	nothing := r.conn.in.ring.Len() == 0 || r.broken != 0
	switch {
	case r.failure != 0 && !r.readable:
		r.end(true, r.failure)
	case r.conn.closed.Load():
		r.end(false, r.conn.opError("read", net.ErrClosed))
	case failure != nil && nothing:
		r.end(false, r.conn.opError("read", *failure))
	case r.finFromSocket && r.broken != 0:
		r.end(true, r.broken)
	case r.finFromSocket && r.finToSocket:
		r.end(false, nil)
	default:
		if failure != nil || r.failure != 0 {
			r.watch()
		}
		r.listen()
	}
}

// toSocket writes the data that has arrived on the connection to the socket.
func (r *Relay) toSocket(now clock.Time) {
	c := r.conn
	for !r.full && r.broken == 0 {
		before := c.in.ring.Len()
		if before == 0 {
			break
		}
		head := c.in.ring.Head()
		r.pieces = c.in.ring.Slices(r.pieces[:0], head, min(before, relayChunk))
		n, errno := send(r.fd, r.pieces[0])
		switch errno {
		case 0:
			c.in.ring.Release(head + uint64(n))
			if reports(&c.duplex, before, n) {
				c.tc.Consumed(now)
			}
			r.moved += uint64(n)
			r.count(false, n)
		case unix.EAGAIN:
			r.full = true
		case unix.EINTR:
		default:
			r.broken = resetBy(errno)
		}
	}
	clear(r.pieces)
	if c.in.ring.Len() == 0 && c.eof.Load() && !r.finToSocket && r.broken == 0 {
		r.finToSocket = true
		_ = unix.Shutdown(r.fd, unix.SHUT_WR) // a reset socket reports its error itself
	}
}

// fromSocket reads as much data as the connection has room for.
func (r *Relay) fromSocket(now clock.Time) {
	c, chunk := r.conn, r.node.TCP.relays.chunk
	for reads := 0; r.readable && !r.finFromSocket && reads < relayReads; reads++ {
		room := min(len(chunk), c.out.ring.Free())
		if room == 0 {
			return
		}
		n, errno := receive(r.fd, chunk[:room])
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			r.readable = false
		case errno != 0:
			r.fail(resetBy(errno))
			r.readable = false
		case n == 0:
			r.readable = false
			if r.finFromSocket = r.failure == 0; r.finFromSocket && !c.out.closed.Swap(true) {
				_ = c.tc.CloseWrite(now) // a connection that has failed reports its error itself
			}
		default:
			c.out.ring.Write(chunk[:n])
			c.tc.Wrote(now)
			r.moved += uint64(n)
			r.count(true, n)
			r.readable = n == room
		}
	}
}

// listen registers for the events that the next step needs. The kernel always reports errors.
func (r *Relay) listen() {
	if r.failure != 0 { // room in the connection, or the timer, continues the relay
		r.waiter.forget(r.fd)
		return
	}
	var events uint32
	if !r.finFromSocket && r.conn.out.ring.Free() > 0 {
		events |= unix.EPOLLIN
	}
	if r.full {
		events |= unix.EPOLLOUT
	}
	r.waiter.want(r.fd, events)
}

// watch ends the relay if no data moves for the stall time.
func (r *Relay) watch() {
	if r.stalling {
		return
	}
	r.stalling = true
	before := r.moved
	time.AfterFunc(r.stall, func() {
		r.node.Post(func(now clock.Time) {
			r.stalling = false
			switch {
			case r.node.TCP.relays.byConn[r.conn] != r: // the relay has ended
			case r.moved > before:
				r.run(now)
			case r.failure != 0:
				r.end(true, r.failure)
			default:
				r.end(false, r.conn.opError("read", *r.conn.failure.Load()))
			}
		})
	})
}

// end closes both ends, or resets them after an error.
func (r *Relay) end(ofFD bool, err error) {
	rs := &r.node.TCP.relays
	delete(rs.byConn, r.conn)
	delete(rs.byToken, r.token)
	r.waiter.forget(r.fd)
	r.closeFD(err != nil)
	if err != nil {
		r.conn.Abort()
	} else {
		_ = r.conn.Close() // the connection is still open
	}
	r.ofFD, r.err = ofFD, err
	r.node.leading.wokeAny = true
	close(r.ended)
}

func (r *Relay) closeFD(reset bool) {
	if reset {
		_ = unix.SetsockoptLinger(r.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	_ = unix.Close(r.fd)
}

// send and receive are raw system calls. They do not block, so they need not notify the scheduler.
func send(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), unix.MSG_NOSIGNAL, 0, 0)
	return int(n), errno
}

func receive(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd),
		uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	return int(n), errno
}
