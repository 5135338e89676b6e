package tcp

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// The user calls of RFC 9293 §3.10 on one connection. A user that shares the
// rings with another goroutine writes and reads them himself, and calls Wrote
// and Consumed; the errors are the same.

// Send is SEND (§3.10.2): it takes what fits in the send buffer, perhaps
// nothing, and returns how much that was.
func (c *Conn) Send(now clock.Time, p []byte) (int, error) {
	if err := c.maySend(); err != nil {
		return 0, fmt.Errorf("tcp: send: %w", err)
	}
	n := c.snd.tx.Write(p)
	c.Wrote(now)
	return n, nil
}

// maySend returns why the user may not send, nil if he may. What he sends in
// SYN-SENT and SYN-RECEIVED waits for ESTABLISHED.
func (c *Conn) maySend() error {
	switch c.State() {
	case StateClosed:
		return c.ended()
	case StateListen:
		return ErrUnspecified
	case StateSynSent, StateSynReceived, StateEstablished, StateCloseWait:
		if c.snd.closed {
			return ErrClosing
		}
		return nil
	default:
		return ErrClosing
	}
}

// Receive is RECEIVE (§3.10.3): it takes what has arrived in order, perhaps
// nothing, and returns how much that was. When nothing can come any more it
// returns ErrClosing.
func (c *Conn) Receive(now clock.Time, p []byte) (int, error) {
	if c.rcv.closed {
		return 0, fmt.Errorf("tcp: receive: %w", ErrClosed)
	}
	if n := c.rcv.rx.Read(p); n > 0 {
		c.Consumed(now)
		return n, nil
	}
	switch c.State() {
	case StateClosed:
		return 0, fmt.Errorf("tcp: receive: %w", c.ended())
	case StateCloseWait, StateClosing, StateLastAck, StateTimeWait:
		return 0, fmt.Errorf("tcp: receive: %w", ErrClosing)
	default:
		return 0, nil
	}
}

// ended is the error of calls on a connection that is over: why it failed, or
// that it does not exist.
func (c *Conn) ended() error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotExist, err)
	}
	return ErrNotExist
}

// Status is STATUS (§3.10.6).
type Status struct {
	Tuple                  Tuple
	State                  State
	SendWindow, RecvWindow int
	Unacked, Unread        int // bytes that await acknowledgment, or receipt by the user
	Urgent                 bool
	TOS                    uint8
	UserTimeout            string // "none" when retries are counted instead
}

// Status returns what §3.10.6 lists. A connection that is over has none.
func (c *Conn) Status() (Status, error) {
	if c.State() == StateClosed {
		return Status{}, fmt.Errorf("tcp: status: %w", c.ended())
	}
	s := Status{
		Tuple: c.tuple, State: c.State(), SendWindow: c.snd.wnd,
		RecvWindow: c.rcv.window(), Unacked: c.snd.tx.Len(), Unread: c.rcv.rx.Len(),
		TOS: c.tos, UserTimeout: "none",
	}
	if c.wait.limit > 0 {
		s.UserTimeout = c.wait.limit.String()
	}
	return s, nil
}

// Urgent returns how many bytes, from the next that is read on, belong to
// urgent data or come before it; they need not have arrived yet. Zero: nothing
// is urgent (RFC 9293 §3.8.5, MUST-33).
func (c *Conn) Urgent() int {
	if end, head := streamed(c.rcv.up, c.rcv.irs), c.rcv.rx.Head(); end > head {
		return int(end - head)
	}
	return 0
}
