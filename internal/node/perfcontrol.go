package node

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/perf"
)

// Times and bounds of iperf3's protocol at a node.
const (
	// perfPatience is how long the other end may take for a step of the protocol. Its answer may
	// stand behind what a stream has in a deep queue.
	perfPatience = 30 * time.Second
	// perfGreeting is how long a connection may take to say which test it belongs to.
	perfGreeting = 10 * time.Second
	// perfIdle is how long nothing may move, as iperf3's --rcv-timeout.
	perfIdle = 120 * time.Second
	// maxPerfGreetings is how many connections may be about to say it; one more is closed.
	maxPerfGreetings = 2 * perf.MaxStreams
)

// What a test ends with otherwise than in order, in iperf3's words where it has some.
var (
	errPerfBusy = fmt.Errorf("%w: the server is busy running a test. try again later",
		control.ErrBusy)
	errPerfServerEnded = errors.New("the server has terminated")
	errPerfClientEnded = errors.New("the client has terminated")
	errPerfGone        = errors.New("control socket has closed unexpectedly")
	errPerfSilent      = fmt.Errorf("%w: the other end says nothing", control.ErrTimeout)
)

// perfControl is the control connection of a test.
type perfControl struct {
	conn *Conn
	// heard has what the other end said while nobody waited for it. It is read by one goroutine,
	// for one state.
	heard chan perfNews
}

// perfNews is a state that came, or that none will.
type perfNews struct {
	state perf.State
	err   error
}

// say tells a state.
func (c *perfControl) say(s perf.State) error {
	return c.write([]byte{byte(s)})
}

func (c *perfControl) write(b []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(perfPatience)); err != nil {
		return perfError(err)
	}
	_, err := c.conn.Write(b)
	return perfError(err)
}

// read fills b within a time; 0: for ever.
func (c *perfControl) read(b []byte, within time.Duration) error {
	var by time.Time
	if within > 0 {
		by = time.Now().Add(within)
	}
	if err := c.conn.SetReadDeadline(by); err != nil {
		return perfError(err)
	}
	_, err := io.ReadFull(c.conn, b)
	return perfError(err)
}

// perfError names what became of the control connection.
func perfError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed):
		return errPerfGone
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errPerfSilent
	case errors.Is(err, control.ErrReset):
		return fmt.Errorf("%w: %w", errPerfGone, control.ErrReset)
	}
	return control.Reason(err)
}

// state reads what the other end says next. What ends a test is an error.
func (c *perfControl) state(within time.Duration) (perf.State, error) {
	var b [1]byte
	if err := c.read(b[:], within); err != nil {
		return 0, err
	}
	s := perf.State(b[0])
	switch s {
	case perf.AccessDenied:
		return s, errPerfBusy
	case perf.ServerTerminate:
		return s, errPerfServerEnded
	case perf.ClientTerminate:
		return s, errPerfClientEnded
	case perf.ServerError:
		return s, c.serverError()
	default:
		return s, nil
	}
}

// serverError reads why a server gives up.
func (c *perfControl) serverError() error {
	var codes [8]byte
	if err := c.read(codes[:], perfPatience); err != nil {
		return errPerfServerEnded
	}
	code := int32(codes[0])<<24 | int32(codes[1])<<16 | int32(codes[2])<<8 | int32(codes[3])
	return fmt.Errorf("the server says: %s", perf.CodeText(code))
}

// refuse tells a client why a server gives up: it has words for the code.
func (c *perfControl) refuse(code int32) {
	server := perf.ServerError
	b := []byte{
		byte(server), byte(code >> 24), byte(code >> 16), byte(code >> 8), byte(code),
		0, 0, 0, 0,
	}
	_ = c.write(b) // it is over either way
	_ = c.conn.Close()
}

// perfParting is how long the other end has to hear that it is over, before its streams break.
const perfParting = time.Second

// part tells the other end that it is over, and waits until it has heard that.
func (c *perfControl) part(s perf.State) {
	if c.say(s) == nil && c.heard != nil {
		timer := time.NewTimer(perfParting)
		defer timer.Stop()
		select {
		case <-c.heard:
		case <-timer.C:
		}
	}
	_ = c.conn.Close() // it is over either way
}

// drop ends a connection that is not closed yet. One that is still delivers its last word.
func (c *perfControl) drop() {
	if !c.conn.closed.Load() {
		c.conn.Abort()
	}
}

// expect reads a state that must come next.
func (c *perfControl) expect(want perf.State) error {
	s, err := c.state(perfPatience)
	return c.wanted(s, want, err)
}

func (c *perfControl) wanted(s, want perf.State, err error) error {
	if err == nil && s != want {
		err = fmt.Errorf("%w: %v where %v is due", perf.ErrMessage, s, want)
	}
	return err
}

// listen has the next state end up in heard. Nobody else reads before it does.
func (c *perfControl) listen() {
	c.heard = make(chan perfNews, 1)
	go func() {
		s, err := c.state(0)
		c.heard <- perfNews{s, err}
	}()
}

// awaitHeard waits for what listen hears.
func (c *perfControl) awaitHeard(want perf.State) error {
	timer := time.NewTimer(perfPatience)
	defer timer.Stop()
	select {
	case m := <-c.heard:
		return c.wanted(m.state, want, m.err)
	case <-timer.C:
		return errPerfSilent
	}
}

// send sends a message.
func (c *perfControl) send(m any) error {
	b, err := perf.AppendMessage(nil, m)
	if err != nil {
		return err
	}
	return c.write(b)
}

// receive reads a message of at most so many bytes. No more memory is taken than has come, but for
// the first piece of it.
func (c *perfControl) receive(most int) ([]byte, error) {
	var prefix [perf.PrefixSize]byte
	if err := c.read(prefix[:], perfPatience); err != nil {
		return nil, err
	}
	n, err := perf.Length(prefix, most)
	if err != nil {
		return nil, err
	}
	text := make([]byte, n)
	return text, c.read(text, perfPatience)
}
