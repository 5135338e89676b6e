package portforward

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// relayChunk is how much a flow copies at a time. An idle flow holds no memory for it.
const relayChunk = 64 << 10

var relayBuffers = sync.Pool{New: func() any { return new([relayChunk]byte) }}

// end is one end of a flow of TCP through a door.
type end interface {
	// receive waits for bytes and returns them in memory that it borrowed, to be given back by
	// relayBuffers.Put; nil: there are none.
	receive() (*[relayChunk]byte, int, error)
	// give writes for as long as wait at most.
	give(p []byte, wait time.Duration) (int, error)
	// fails is why the connection has failed. It waits, behind the peer's FIN, until that is so or
	// the connection is closed here; or does not wait: nil, it goes on. Beside it nobody receives.
	fails(wait bool) error
	CloseWrite() error
	Close() error
	Abort()
}

// relay copies between this machine's end of a flow and the virtual one until both directions have
// ended, and returns what went wrong. What is sent into the virtual network counts as in.
//
// A FIN ends one direction and the other goes on. An end that cannot be read any more has been
// reset or has timed out: the other is reset, behind a FIN too. One that cannot be written to is
// read on, for what it said before may still be there, and says itself why it ended.
func (d *Door) relay(near, far end) error {
	r := &relaying{door: d, near: near, far: far, left: 2}
	outward := make(chan struct{})
	go func() {
		defer close(outward)
		r.way(near, far, false)
	}()
	r.way(far, near, true)
	<-outward
	return r.err
}

// relaying is the two directions of a flow.
type relaying struct {
	door      *Door
	near, far end

	mu   sync.Mutex
	left int   // directions that go on
	err  error // why one was not in order
}

// way copies one direction to its end, and sees whether who has said all is there to hear the rest.
func (r *relaying) way(to, from end, in bool) {
	err := r.door.pump(to, from, in)
	if r.ended(err) || err != nil {
		return
	}
	if err := from.fails(true); !errors.Is(err, net.ErrClosed) {
		r.note(err)
		to.Abort()
	}
}

// note keeps, of several reasons, the first that is not of our own doing.
func (r *relaying) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(r.err, net.ErrClosed) && err != nil {
		r.err = err
	}
}

// ended notes the end of a direction, and reports whether it was the last: then the flow ends.
func (r *relaying) ended(err error) bool {
	r.note(err)
	r.mu.Lock()
	r.left--
	over, wrong := r.left == 0, r.err != nil
	r.mu.Unlock()
	switch {
	case !over:
	case wrong:
		r.near.Abort()
		r.far.Abort()
	default: // there is nothing to lose
		_ = r.near.Close()
		_ = r.far.Close()
	}
	return over
}

// pump copies one direction to its end.
func (d *Door) pump(to, from end, in bool) error {
	for {
		buf, k, err := from.receive()
		if k > 0 {
			d.count(in, k)
			wrong, failed := d.hand(to, from, buf[:k])
			relayBuffers.Put(buf)
			switch {
			case failed != nil:
				to.Abort()
				return failed
			case wrong != nil:
				return wrong
			}
		} else if buf != nil {
			relayBuffers.Put(buf)
		}
		switch {
		case errors.Is(err, io.EOF):
			return to.CloseWrite()
		case err != nil:
			to.Abort()
			return err
		}
	}
}

// hand writes what was received, and returns what is wrong with the reader; or that the writer has
// failed, which nobody could see who reads nothing from it for as long as its reader takes nothing.
func (d *Door) hand(to, from end, p []byte) (wrong, failed error) {
	for {
		k, err := to.give(p, d.set.lookAround)
		p = p[k:]
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err, nil
		case k > 0: // it reads on
		default:
			if failed = from.fails(false); failed != nil {
				return nil, failed
			}
		}
	}
}

// give writes to a connection for as long as wait.
func give(c net.Conn, p []byte, wait time.Duration) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	return c.Write(p)
}

// virtualEnd is the end of a flow in the virtual network.
type virtualEnd struct{ conn *node.Conn }

func (v virtualEnd) receive() (*[relayChunk]byte, int, error) {
	if err := v.conn.AwaitRead(); err != nil {
		return nil, 0, err
	}
	buf, _ := relayBuffers.Get().(*[relayChunk]byte)
	k, err := v.conn.Read(buf[:])
	return buf, k, err
}

func (v virtualEnd) CloseWrite() error { return v.conn.CloseWrite() }
func (v virtualEnd) Close() error      { return v.conn.Close() }
func (v virtualEnd) Abort()            { v.conn.Abort() }

func (v virtualEnd) give(p []byte, wait time.Duration) (int, error) {
	return give(v.conn, p, wait)
}

func (v virtualEnd) fails(wait bool) error {
	if wait {
		return v.conn.AwaitFailure()
	}
	return v.conn.Failed()
}

// machineEnd is the end of a flow in this machine's network.
type machineEnd struct{ *net.TCPConn }

func (m machineEnd) give(p []byte, wait time.Duration) (int, error) {
	return give(m, p, wait)
}

// Abort resets the connection.
func (m machineEnd) Abort() {
	_ = m.SetLinger(0) // it may be closed
	_ = m.Close()
}
