package node

import (
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// duplex is the part of a net.Conn that TCP and RCP share: two rings, which the loop also uses, and
// two deadlines.
type duplex struct {
	node *Node
	transport

	in, out    halfConn
	unreported int // bytes read since the last report; guarded by in.mu

	// The loop sets these fields for the application.
	established gate        // opens when the connection is established or has failed
	eof         atomic.Bool // the peer's FIN follows the data in the ring
	closed      atomic.Bool // set by Close
	failure     atomic.Pointer[error]
}

// transport is the protocol of a connection.
type transport interface {
	// tell makes the loop process a change by the application.
	tell(what uint32)
	// network is the protocol's name in errors.
	network() string
	Local() netip.AddrPort
	Remote() netip.AddrPort
}

func (d *duplex) init(n *Node, c transport, rx, tx *buffer.Ring) {
	d.node, d.transport, d.in.ring, d.out.ring = n, c, rx, tx
}

// halfConn is one direction of a connection, as the application sees it.
type halfConn struct {
	mu     sync.Mutex // serializes calls: a ring has one producer and one consumer
	ring   *buffer.Ring
	ready  bell // rings when the contents of ring have changed
	by     deadline
	closed atomic.Bool // set when the application closes the direction
	parked atomic.Bool // set while a call waits for ready
}

// wakeReader wakes up a waiting Read.
func (d *duplex) wakeReader() {
	d.in.ready.ring()
	d.node.leading.wakeLeader(d)
}

// park waits for a token of ready, which must be armed, or for the deadline.
func (h *halfConn) park() {
	h.parked.Store(true)
	select {
	case <-h.ready.tokens():
	case <-h.by.wait():
	}
	h.parked.Store(false)
}

// Read reads the data that has arrived. It waits for at least one byte. It returns io.EOF after the
// peer's FIN.
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
			return 0, io.EOF // net.TCPConn also returns io.EOF after CloseRead
		}
		select {
		case <-d.in.by.wait():
			return 0, d.opError("read", os.ErrDeadlineExceeded)
		default:
		}
		if n := d.take(p); n > 0 {
			return n, nil
		}
		// The loop stores the last bytes before it sets eof, so check the ring again.
		eof, failure := d.eof.Load(), d.failure.Load()
		if n := d.take(p); n > 0 {
			return n, nil
		}
		if eof {
			return 0, io.EOF // a reset after the FIN does not affect received data
		}
		if failure != nil {
			return 0, d.opError("read", *failure)
		}
		// Check again after arming the bell, which may have missed rings, and after lead, which
		// runs the node's loop in this goroutine for a while.
		if d.in.ready.arm() || d.node.leading.lead(d) {
			continue
		}
		d.in.park()
		d.node.Time.settle()
	}
}

// take reads from the ring. It notifies the loop if the peer may be waiting for a larger window: at
// least half of the buffer was full, or a quarter has been read since the last notification.
func (d *duplex) take(p []byte) int {
	before := d.in.ring.Len()
	n := d.in.ring.Read(p)
	if n == 0 {
		return 0
	}
	if reports(d, before, n) {
		d.tell(consumed)
	}
	return n
}

// reports counts n bytes read, with before in the ring, and says whether to notify the loop.
func reports(d *duplex, before, n int) bool {
	d.unreported += n
	limit := d.in.ring.Limit()
	if before < limit/2 && d.unreported < limit/4 {
		return false
	}
	d.unreported = 0
	return true
}
