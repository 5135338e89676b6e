package drill

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// socket is the object behind a file descriptor of the script.
type socket struct {
	conn     *tcp.Conn
	listener *tcp.Listener
	port     uint16
	nonblock bool
	reported bool // a call has returned the connection's error
	noRead   bool // shutdown(SHUT_RD)
	noWrite  bool
	set      []setting // in the order of setsockopt, for sockets without a connection
	values   map[string]int64
}

// outcome is the result of a call, or says that the call has to wait.
type outcome struct {
	result int64
	errno  string
	waits  bool
}

func done(n int64) outcome        { return outcome{result: n} }
func failed(errno string) outcome { return outcome{result: -1, errno: errno} }
func (o outcome) is(c *call) bool { return o.result == c.result && o.errno == c.errno }
func (o outcome) String() string  { return describe(o.result, o.errno) }
func describe(n int64, e string) string {
	if e == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d %s", n, e)
}

// step tries to finish a call. It is called again while the call has to wait.
type step func() outcome

// blocked is a call that has not returned.
type blocked struct {
	line  int
	call  *call
	end   clock.Time
	start clock.Time
	step  step
}

// calls are the system calls. A handler starts one. Its error is an error in the script.
var calls map[string]func(w *world, c *call) (step, error)

func init() {
	calls = map[string]func(w *world, c *call) (step, error){
		"socket": sysSocket, "bind": sysBind, "listen": sysListen, "accept": sysAccept,
		"connect": sysConnect, "read": sysRead, "recv": sysRead, "write": sysWrite,
		"send": sysWrite, "sendto": sysWrite, "shutdown": sysShutdown, "close": sysClose,
		"fcntl": sysFcntl, "setsockopt": sysSetsockopt, "getsockopt": sysGetsockopt,
		"poll": sysPoll, "ioctl": sysIoctl,
	}
}

func (c *call) run(w *world, e *event) error {
	if w.waiting != nil {
		if err := w.await(); err != nil {
			return err
		}
		w.line = e.line
	}
	base := origin
	if e.when.kind == relative {
		base = w.now
	}
	if err := w.reach(e); err != nil {
		return err
	}
	step, err := calls[c.name](w, c)
	if err != nil {
		return w.fail("%s: %v", c.name, err)
	}
	b := &blocked{line: e.line, call: c, start: w.now, end: w.now, step: step}
	if c.blocks {
		b.end = base.Add(c.end)
	}
	w.waiting = b
	if err := w.pump(); err != nil {
		return err
	}
	if w.waiting != nil && !c.blocks {
		return w.fail("%s blocks, want %s at once", c.name, describe(c.result, c.errno))
	}
	return nil
}

// poke lets the waiting call return if it can, and checks its result and time.
func (w *world) poke() error {
	b := w.waiting
	if b == nil {
		return nil
	}
	line := w.line
	w.line = b.line
	o := b.step()
	slack := w.slack(b.end.Sub(b.start))
	switch {
	case o.waits && w.now > b.end.Add(slack):
		return w.fail("%s has not returned by %s", b.call.name, stamp(w.now))
	case o.waits:
		w.line = line
		return nil
	case !o.is(b.call):
		return w.fail("%s returned %s at %s, want %s", b.call.name, o, stamp(w.now),
			describe(b.call.result, b.call.errno))
	case w.now < b.end.Add(-slack) || w.now > b.end.Add(slack):
		return w.fail("%s returned at %s, want %s", b.call.name, stamp(w.now), stamp(b.end))
	}
	w.waiting = nil
	w.line = line
	return w.pump() // segments caused by the call
}

// await advances the clock until the waiting call has returned.
func (w *world) await() error {
	b := w.waiting
	if err := w.runUntil(b.end.Add(w.slack(b.end.Sub(b.start))), false); err != nil {
		return err
	}
	if w.waiting != nil {
		w.line = b.line
		return w.fail("%s has not returned by %s", b.call.name, stamp(w.now))
	}
	return nil
}

// of returns the socket that the call's first argument names.
func (w *world) of(c *call) (*socket, error) {
	if len(c.args) == 0 {
		return nil, errors.New("no arguments")
	}
	fd, ok := c.args[0].number()
	s := w.sockets[fd]
	if !ok || s == nil {
		return nil, fmt.Errorf("no socket %d", fd)
	}
	return s, nil
}

// at returns the number that is the i-th argument.
func (c *call) at(i int) (int64, error) {
	if i < len(c.args) {
		if n, ok := c.args[i].number(); ok {
			return n, nil
		}
	}
	return 0, fmt.Errorf("argument %d is not a number", i+1)
}

// word reports whether the i-th argument contains the given word.
func (c *call) word(i int, word string) bool { return i < len(c.args) && c.args[i].has(word) }

func at(o outcome) step { return func() outcome { return o } }

// take returns the error that the program has not seen yet, as an errno.
func (s *socket) take() string {
	if s.conn == nil || s.reported || s.conn.Err() == nil || errors.Is(s.conn.Err(), tcp.ErrAborted) {
		return ""
	}
	s.reported = true
	return errno(s.conn.Err())
}

// errno returns Linux's name for an error of the engine. If ICMP gave the reason, it names the
// reason.
func errno(err error) string {
	for _, n := range []struct {
		err  error
		name string
	}{
		{errNetUnreachable, "ENETUNREACH"},
		{errHostUnreachable, "EHOSTUNREACH"},
		{tcp.ErrUnreachable, "EHOSTUNREACH"},
		{tcp.ErrTimeout, "ETIMEDOUT"},
		{tcp.ErrRefused, "ECONNREFUSED"},
		{tcp.ErrReset, "ECONNRESET"},
		{tcp.ErrPortInUse, "EADDRINUSE"},
	} {
		if errors.Is(err, n.err) {
			return n.name
		}
	}
	return err.Error()
}

// wait returns the outcome of a call that would block.
func (s *socket) wait(c *call) outcome {
	if s.nonblock || c.word(3, "MSG_DONTWAIT") {
		return failed("EAGAIN")
	}
	return outcome{waits: true}
}
