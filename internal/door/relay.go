package door

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/tidepool-net/tidepool/internal/node"
)

// relayChunk is how much a flow copies at a time. The memory for it is borrowed when there is
// something to copy, so that a flow that is idle holds none.
const relayChunk = 64 << 10

var relayBuffers = sync.Pool{New: func() any { return new([relayChunk]byte) }}

// end is one end of a flow of TCP through a door.
type end interface {
	// receive waits for bytes and returns them in memory that it borrowed, to be given back by
	// relayBuffers.Put; nil: there are none.
	receive() (*[relayChunk]byte, int, error)
	Write(p []byte) (int, error)
	CloseWrite() error
	Close() error
	Abort()
}

// relay copies between this machine's end of a flow and the virtual one until both directions
// have ended, and returns why it was not in order. What is sent into the virtual network is told
// as in.
//
// A FIN ends one direction and the other goes on. An end that cannot be read any more has been
// reset or has timed out: the other is reset. One that cannot be written to is read on, for what
// it said before may still be there, and says itself why it ended.
func (d *Door) relay(near, far end) error {
	outward := make(chan error, 1)
	go func() { outward <- d.pump(near, far, false) }()
	err := d.pump(far, near, true)
	if back := <-outward; err == nil || errors.Is(err, net.ErrClosed) && back != nil {
		err = back // of two, what is not of our own doing
	}
	if err != nil {
		near.Abort()
		far.Abort()
		return err
	}
	_ = near.Close() // both directions have ended: there is nothing to lose
	_ = far.Close()
	return nil
}

// pump copies one direction to its end.
func (d *Door) pump(to, from end, in bool) error {
	for {
		buf, k, err := from.receive()
		if k > 0 {
			d.count(in, k)
			_, wrong := to.Write(buf[:k])
			relayBuffers.Put(buf)
			if wrong != nil {
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

// virtualEnd is the end of a flow in the virtual network.
type virtualEnd struct{ *node.Conn }

func (v virtualEnd) receive() (*[relayChunk]byte, int, error) {
	if err := v.AwaitRead(); err != nil {
		return nil, 0, err
	}
	buf, _ := relayBuffers.Get().(*[relayChunk]byte)
	k, err := v.Read(buf[:])
	return buf, k, err
}

// machineEnd is the end of a flow in this machine's network.
type machineEnd struct{ *net.TCPConn }

// Abort resets the connection.
func (m machineEnd) Abort() {
	_ = m.SetLinger(0) // it may be closed
	_ = m.Close()
}
