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

// relayChunk is how many bytes are copied at a time. An idle flow holds no buffer.
const relayChunk = 64 << 10

var relayBuffers = sync.Pool{New: func() any { return new([relayChunk]byte) }}

// end is one of the two TCP connections of a flow.
type end interface {
	// receive waits for bytes. Its caller returns the buffer with relayBuffers.Put, unless it is
	// nil.
	receive() (*[relayChunk]byte, int, error)
	// give writes p, for at most the time wait.
	give(p []byte, wait time.Duration) (int, error)
	// failed returns why the connection has failed, or nil. If wait is set, it blocks after the
	// peer's FIN, until the connection fails or is closed on this side. Nothing else may read
	// meanwhile.
	failed(wait bool) error
	CloseWrite() error
	Close() error
	Abort()
}

// relay copies in both directions until both have ended, and returns the first error. Bytes into
// the virtual network count as in.
//
// A FIN closes one direction only. If an end cannot be read because it was reset or timed out, the
// other end is reset, even if a FIN was already sent to it. If an end cannot be written to, it is
// still read: it may have sent data before it failed, and reading returns its error.
func (fw *Forward) relay(near, far end) error {
	if j, ok := fw.join(near, far); ok {
		ofMachine, err := j.Wait()
		if ofMachine {
			err = machineError(err)
		}
		return err
	}
	r := &relayState{forward: fw, near: near, far: far, left: 2}
	outward := make(chan struct{})
	go func() {
		defer close(outward)
		r.copyDirection(near, far, false)
	}()
	r.copyDirection(far, near, true)
	<-outward
	return r.err
}

// relayState is the state of relay.
type relayState struct {
	forward   *Forward
	near, far end

	mu   sync.Mutex
	left int   // number of open directions
	err  error // first error
}

// copyDirection copies one direction until it ends. After a FIN it waits for a reset by the same
// end.
func (r *relayState) copyDirection(to, from end, in bool) {
	err := r.forward.pump(to, from, in)
	if r.ended(err) || err != nil {
		return
	}
	if err := from.failed(true); !errors.Is(err, net.ErrClosed) {
		r.keepError(err)
		to.Abort()
	}
}

// keepError keeps the first error, but prefers one that was not caused by closing the flow.
func (r *relayState) keepError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || errors.Is(r.err, net.ErrClosed) && err != nil {
		r.err = err
	}
}

// ended counts a direction that has ended, and reports whether it was the last. If so, it closes
// both connections.
func (r *relayState) ended(err error) bool {
	r.keepError(err)
	r.mu.Lock()
	r.left--
	over, wrong := r.left == 0, r.err != nil
	r.mu.Unlock()
	switch {
	case !over:
	case wrong:
		r.near.Abort()
		r.far.Abort()
	default: // both ends have sent FINs
		_ = r.near.Close()
		_ = r.far.Close()
	}
	return over
}

// pump copies one direction until it ends.
func (fw *Forward) pump(to, from end, in bool) error {
	for {
		buf, k, err := from.receive()
		if k > 0 {
			fw.count(in, k)
			wrong, failed := fw.writeAll(to, from, buf[:k])
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

// writeAll writes received bytes to an end. It returns that end's error as wrong. While that end's
// window is closed, nothing is read from the other end, so writeAll checks whether the other end
// has failed, and returns its error as failed.
func (fw *Forward) writeAll(to, from end, p []byte) (wrong, failed error) {
	for {
		k, err := to.give(p, fw.set.stallCheck)
		p = p[k:]
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return err, nil
		case k > 0: // the reader is slow but alive
		default:
			if failed = from.failed(false); failed != nil {
				return nil, failed
			}
		}
	}
}

func give(c net.Conn, p []byte, wait time.Duration) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(wait)); err != nil {
		return 0, err
	}
	return c.Write(p)
}

// virtualEnd is the connection in the virtual network.
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

func (v virtualEnd) failed(wait bool) error {
	if wait {
		return v.conn.AwaitFailure()
	}
	return v.conn.Failed()
}

// machineEnd is the connection in this machine's network.
type machineEnd struct{ *net.TCPConn }

func (m machineEnd) give(p []byte, wait time.Duration) (int, error) {
	return give(m, p, wait)
}

// Abort resets the connection.
func (m machineEnd) Abort() {
	_ = m.SetLinger(0) // the connection may be closed
	_ = m.Close()
}
