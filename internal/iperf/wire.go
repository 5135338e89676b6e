package iperf

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// These are times and limits of the protocol.
const (
	// patience is the timeout of a step of the protocol. The other end's answer may be queued
	// after a stream's data.
	patience = 30 * time.Second
	// greetingTime is the time within which a connection must send its cookie.
	greetingTime = 10 * time.Second
	// idleTime is the time without data after which a test fails, as iperf3's --rcv-timeout.
	idleTime = 120 * time.Second
	// maxGreetings limits the connections whose cookie has not arrived. When the limit is exceeded,
	// the oldest is closed.
	maxGreetings = 2 * MaxStreams
)

// These errors end a test. They have iperf3's text if iperf3 has one.
var (
	errBusy = fmt.Errorf("%w: the server is busy running a test. try again later",
		control.ErrBusy)
	errServerEnded = errors.New("the server has terminated")
	errClientEnded = errors.New("the client has terminated")
	errGone        = errors.New("control socket has closed unexpectedly")
	errSilent      = fmt.Errorf("%w: the other end does not answer", control.ErrTimeout)
)

// wire is the control connection of a test.
type wire struct {
	conn   *node.Conn
	closed atomic.Bool
	// states receives a state that arrives while no call waits for one. listen starts one goroutine
	// for it, which reads one state.
	states chan stateMessage
}

// stateMessage is a state that arrived, or the error that ended the connection.
type stateMessage struct {
	state State
	err   error
}

func (c *wire) say(s State) error {
	return c.write([]byte{byte(s)})
}

func (c *wire) write(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return wireError(err)
	}
	_, err := c.conn.Write(b)
	return wireError(err)
}

// read fills b within the given time; 0: no limit.
func (c *wire) read(b []byte, within time.Duration) error {
	var by time.Time
	if within > 0 {
		by = time.Now().Add(within)
	}
	if err := c.conn.SetReadDeadline(by); err != nil {
		return wireError(err)
	}
	_, err := io.ReadFull(c.conn, b)
	return wireError(err)
}

// wireError wraps an error of the control connection.
func wireError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed):
		return errGone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errSilent
	case errors.Is(err, control.ErrReset):
		return fmt.Errorf("%w: %w", errGone, control.ErrReset)
	}
	return control.Reason(err)
}

// state reads the next state of the other end. It returns a state that ends the test as an error.
func (c *wire) state(within time.Duration) (State, error) {
	var b [1]byte
	if err := c.read(b[:], within); err != nil {
		return 0, err
	}
	s := State(b[0])
	switch s {
	case AccessDenied:
		return s, errBusy
	case ServerTerminate:
		return s, errServerEnded
	case ClientTerminate:
		return s, errClientEnded
	case ServerError:
		return s, c.serverError()
	default:
		return s, nil
	}
}

func (c *wire) serverError() error {
	var codes [8]byte
	if err := c.read(codes[:], patience); err != nil {
		return errServerEnded
	}
	code := int32(codes[0])<<24 | int32(codes[1])<<16 | int32(codes[2])<<8 | int32(codes[3])
	return fmt.Errorf("server error: %s", CodeText(code))
}

func (c *wire) refuse(code int32) {
	server := ServerError
	b := []byte{
		byte(server), byte(code >> 24), byte(code >> 16), byte(code >> 8), byte(code),
		0, 0, 0, 0,
	}
	_ = c.write(b) // the test is over even if this fails
	c.close()
}

// terminateTime limits how long an end that sent its last state waits for the other end to close.
const terminateTime = time.Second

// terminate sends the last state and waits until the other end has closed the connection.
func (c *wire) terminate(s State) {
	if c.say(s) == nil && c.states != nil {
		select {
		case <-c.states:
		case <-time.After(terminateTime):
		}
	}
	c.close()
}

// close closes the connection in order, so data already written is still delivered.
func (c *wire) close() {
	c.closed.Store(true)
	_ = c.conn.Close()
}

// drop aborts a connection that is not closed yet.
func (c *wire) drop() {
	if !c.closed.Load() {
		c.conn.Abort()
	}
}

// expect reads a state and fails if it differs from the expected one.
func (c *wire) expect(want State) error {
	s, err := c.state(patience)
	return c.wanted(s, want, err)
}

func (c *wire) wanted(s, want State, err error) error {
	if err == nil && s != want {
		err = fmt.Errorf("%w: state %v, expected %v", ErrMessage, s, want)
	}
	return err
}

// listen starts to read the next state into states. Nothing else may read from the connection
// before the state arrives.
func (c *wire) listen() {
	c.states = make(chan stateMessage, 1)
	go func() {
		s, err := c.state(0)
		c.states <- stateMessage{s, err}
	}()
}

// awaitState waits for the state that listen reads.
func (c *wire) awaitState(want State) error {
	select {
	case m := <-c.states:
		return c.wanted(m.state, want, m.err)
	case <-time.After(patience):
		return errSilent
	}
}

func (c *wire) send(m any) error {
	b, err := AppendMessage(nil, m)
	if err != nil {
		return err
	}
	return c.write(b)
}

// receive reads a message of at most `most` bytes.
func (c *wire) receive(most int) ([]byte, error) {
	var prefix [PrefixSize]byte
	if err := c.read(prefix[:], patience); err != nil {
		return nil, err
	}
	n, err := Length(prefix, most)
	if err != nil {
		return nil, err
	}
	text := make([]byte, n)
	return text, c.read(text, patience)
}
