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
	firstJoint = 1 << 20 // tokens of devices are smaller
	joinChunk  = 64 << 10
	joinReads  = 4 // chunks that an iteration reads from one socket
)

// joints are the connections that Join has joined. Loop only.
type joints struct {
	node    *Node
	byConn  map[*Conn]*Joint
	byToken map[int]*Joint
	next    int
	chunk   []byte // memory of one read
	output  bool   // the stack may have something to send
}

// Joint relays data between a connection and a stream socket of this machine. The loop copies the
// data, so no goroutine must wake up for it. Only the loop uses the fields.
//
// A FIN closes one direction. If one end fails, the data that it sent before is delivered, and the
// other end is reset, even after a FIN. If the other end accepts no data for the stall time, it is
// reset without that data.
type Joint struct {
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

// Join joins the connection with a connected, nonblocking socket, which the joint closes. Only
// Abort may be called on the connection afterward. Join returns false if the node cannot wait for
// sockets. The caller then copies the data itself. The loop calls count with the number of bytes
// that it has read from the socket (in) or written to it.
func Join(
	c *Conn, fd int, stall time.Duration, count func(in bool, n int),
) (*Joint, bool) {
	w, ok := c.node.waiter.(*epollWaiter)
	if !ok {
		return nil, false
	}
	j := &Joint{
		node: c.node, conn: c, waiter: w, fd: fd, count: count, stall: stall, readable: true,
		ended: make(chan struct{}),
	}
	err := c.node.Call(func(_ *stack.Stack, now clock.Time) error {
		return c.node.TCP.joints.add(j, now)
	})
	return j, err == nil
}

// Wait waits until both directions have ended and returns the first error. ofFD says that the error
// is the socket's.
func (j *Joint) Wait() (ofFD bool, err error) {
	select {
	case <-j.ended:
	case <-j.node.stopped:
		select {
		case <-j.ended:
		default: // the loop has ended, so it no longer uses the joint
			j.closeFD(true)
			return false, net.ErrClosed
		}
	}
	return j.ofFD, j.err
}

// pending reports whether joints have written to the stack since the last call of drained.
func (js *joints) pending() bool { return js.output }

// drained notes that the stack's output is being sent.
func (js *joints) drained() { js.output = false }

func (js *joints) add(j *Joint, now clock.Time) error {
	if js.byConn == nil {
		js.node = j.node
		js.byConn, js.byToken = map[*Conn]*Joint{}, map[int]*Joint{}
		js.chunk = make([]byte, joinChunk)
	}
	js.next++
	j.token = firstJoint + js.next%firstJoint
	if err := j.waiter.Add(j.fd, j.token); err != nil {
		return err
	}
	js.byConn[j.conn], js.byToken[j.token] = j, j
	j.run(now)
	return nil
}

// ready handles an event of a socket. It reports whether the token belongs to a joint.
func (js *joints) ready(token int) bool {
	if token < firstJoint {
		return false
	}
	if j := js.byToken[token]; j != nil { // the joint may have ended
		j.full, j.readable = false, true
		if j.finFromSocket || j.conn.out.ring.Free() == 0 { // reading does not show the error here
			j.fail(socketError(j.fd))
		}
		j.run(js.node.Time.now())
	}
	return true
}

// event handles an event of a connection.
func (js *joints) event(c *Conn, now clock.Time) {
	if j := js.byConn[c]; j != nil {
		j.run(now)
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

func (j *Joint) fail(errno syscall.Errno) {
	if errno != 0 && j.failure == 0 {
		j.failure = errno
	}
}

// run copies what it can, and ends the joint when nothing is left to copy.
func (j *Joint) run(now clock.Time) {
	j.node.TCP.joints.output = true
	j.toSocket(now)
	j.fromSocket(now)
	failure := j.conn.failure.Load()
	nothing := j.conn.in.ring.Len() == 0 || j.broken != 0
	switch {
	case j.failure != 0 && !j.readable:
		j.end(true, j.failure)
	case j.conn.closed.Load():
		j.end(false, j.conn.opError("read", net.ErrClosed))
	case failure != nil && nothing:
		j.end(false, j.conn.opError("read", *failure))
	case j.finFromSocket && j.broken != 0:
		j.end(true, j.broken)
	case j.finFromSocket && j.finToSocket:
		j.end(false, nil)
	default:
		if failure != nil || j.failure != 0 {
			j.watch()
		}
		j.listen()
	}
}

// toSocket writes the data that has arrived on the connection to the socket.
func (j *Joint) toSocket(now clock.Time) {
	c := j.conn
	for !j.full && j.broken == 0 {
		before := c.in.ring.Len()
		if before == 0 {
			break
		}
		head := c.in.ring.Head()
		j.pieces = c.in.ring.Slices(j.pieces[:0], head, min(before, joinChunk))
		n, errno := send(j.fd, j.pieces[0])
		switch errno {
		case 0:
			c.in.ring.Release(head + uint64(n))
			if reports(&c.duplex, before, n) {
				c.tc.Consumed(now)
			}
			j.moved += uint64(n)
			j.count(false, n)
		case unix.EAGAIN:
			j.full = true
		case unix.EINTR:
		default:
			j.broken = resetBy(errno)
		}
	}
	clear(j.pieces)
	if c.in.ring.Len() == 0 && c.eof.Load() && !j.finToSocket && j.broken == 0 {
		j.finToSocket = true
		_ = unix.Shutdown(j.fd, unix.SHUT_WR) // a reset socket reports its error itself
	}
}

// fromSocket reads as much data as the connection has room for.
func (j *Joint) fromSocket(now clock.Time) {
	c, chunk := j.conn, j.node.TCP.joints.chunk
	for reads := 0; j.readable && !j.finFromSocket && reads < joinReads; reads++ {
		room := min(len(chunk), c.out.ring.Free())
		if room == 0 {
			return
		}
		n, errno := receive(j.fd, chunk[:room])
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			j.readable = false
		case errno != 0:
			j.fail(resetBy(errno))
			j.readable = false
		case n == 0:
			j.readable = false
			if j.finFromSocket = j.failure == 0; j.finFromSocket && !c.out.closed.Swap(true) {
				_ = c.tc.CloseWrite(now) // a connection that has failed reports its error itself
			}
		default:
			c.out.ring.Write(chunk[:n])
			c.tc.Wrote(now)
			j.moved += uint64(n)
			j.count(true, n)
			j.readable = n == room
		}
	}
}

// listen registers for the events that the next step needs. The kernel always reports errors.
func (j *Joint) listen() {
	if j.failure != 0 { // room in the connection, or the timer, continues the joint
		j.waiter.forget(j.fd)
		return
	}
	var events uint32
	if !j.finFromSocket && j.conn.out.ring.Free() > 0 {
		events |= unix.EPOLLIN
	}
	if j.full {
		events |= unix.EPOLLOUT
	}
	j.waiter.want(j.fd, events)
}

// watch ends the joint if no data moves for the stall time.
func (j *Joint) watch() {
	if j.stalling {
		return
	}
	j.stalling = true
	before := j.moved
	time.AfterFunc(j.stall, func() {
		j.node.Post(func(now clock.Time) {
			j.stalling = false
			switch {
			case j.node.TCP.joints.byConn[j.conn] != j: // the joint has ended
			case j.moved > before:
				j.run(now)
			case j.failure != 0:
				j.end(true, j.failure)
			default:
				j.end(false, j.conn.opError("read", *j.conn.failure.Load()))
			}
		})
	})
}

// end closes both ends, or resets them after an error.
func (j *Joint) end(ofFD bool, err error) {
	js := &j.node.TCP.joints
	delete(js.byConn, j.conn)
	delete(js.byToken, j.token)
	j.waiter.forget(j.fd)
	j.closeFD(err != nil)
	if err != nil {
		j.conn.Abort()
	} else {
		_ = j.conn.Close() // the connection is still open
	}
	j.ofFD, j.err = ofFD, err
	j.node.leading.roused = true
	close(j.ended)
}

func (j *Joint) closeFD(reset bool) {
	if reset {
		_ = unix.SetsockoptLinger(j.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	_ = unix.Close(j.fd)
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
