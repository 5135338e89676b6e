package node

import (
	"net"
	"os"
)

// Write copies p into the send buffer, and waits while that is full. A return without an error does
// not mean that the data was delivered.
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
			// RFC 9293 §3.10.2: "connection closing", EPIPE on Unix.
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
		d.node.Time.settle()
	}
}

// CloseWrite sends a FIN after the written data. It may be called again.
func (d *duplex) CloseWrite() error {
	if d.closed.Load() {
		return d.opError("close", net.ErrClosed)
	}
	if !d.out.closed.Swap(true) {
		d.finishWrites(closeWrite)
	}
	return d.failed("close") // written data may not have arrived
}

// Abort discards all buffered data. A TCP peer gets a reset. RCP has no such packet: its peer times
// out.
func (d *duplex) Abort() {
	d.closed.Store(true)
	d.out.closed.Store(true)
	d.finishWrites(abort)
}

// finishWrites notifies the loop of a close. It first waits until a concurrent Write has stopped
// adding bytes.
func (d *duplex) finishWrites(how uint32) {
	d.wakeReader()
	d.out.ready.ring()
	d.out.mu.Lock()
	d.tell(how)
	d.out.mu.Unlock()
	if how != closeWrite { // after CloseWrite, Read still needs its deadline
		d.in.by.stop()
		d.out.by.stop()
	}
}
