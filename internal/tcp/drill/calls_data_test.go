package drill

import (
	"errors"
	"fmt"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// size returns the number of bytes of a read or write.
func (c *call) size() (int, error) {
	n, err := c.at(2)
	if err != nil || n < 0 || n > 1<<30 {
		return 0, errors.New("the third argument is not a length")
	}
	return int(n), nil
}

// readFlags and writeFlags are the flags of recv and send.
var (
	readFlags  = []string{"MSG_DONTWAIT", "MSG_PEEK", "MSG_NOSIGNAL"}
	writeFlags = []string{"MSG_DONTWAIT", "MSG_NOSIGNAL"}
)

// checkFlags refuses flags that the interpreter does not know.
func (c *call) checkFlags(known []string) error {
	if len(c.args) < 4 || c.args[3].kind != valWords {
		return nil
	}
	for _, word := range c.args[3].words {
		ok := false
		for _, k := range known {
			ok = ok || word == k
		}
		if !ok {
			return fmt.Errorf("unknown flag %s", word)
		}
	}
	return nil
}

func sysRead(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	n, err := c.size()
	if err == nil {
		err = c.checkFlags(readFlags)
	}
	if err != nil {
		return nil, err
	}
	if s.conn == nil {
		return at(failed("ENOTCONN")), nil
	}
	return func() outcome { return w.read(s, c, n) }, nil
}

func (w *world) read(s *socket, c *call, n int) outcome {
	rx := s.conn.Rx()
	if k := min(rx.Len(), n); k > 0 && !s.noRead {
		if c.word(3, "MSG_PEEK") {
			return done(int64(k))
		}
		offset := uint32(rx.Head())
		b := make([]byte, k)
		rx.Read(b)
		s.conn.Consumed(w.now)
		if at := mismatch(b, offset); at >= 0 {
			return failed(fmt.Sprintf("byte %d differs from the stream", offset+uint32(at)))
		}
		return done(int64(k))
	}
	if e := s.take(); e != "" {
		return failed(e)
	}
	switch state := s.conn.State(); {
	case s.noRead, s.conn.ReadDone(), state == tcp.StateClosed, state == tcp.StateTimeWait:
		return done(0)
	}
	return s.wait(c)
}

func sysWrite(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	n, err := c.size()
	if err == nil {
		err = c.checkFlags(writeFlags)
	}
	if err != nil {
		return nil, err
	}
	if s.conn == nil {
		return at(failed("EPIPE")), nil
	}
	written := 0
	return func() outcome {
		if o, ok := s.unwritable(); ok && written == 0 {
			return o
		}
		written += w.write(s, n-written)
		if written < n && (written == 0 || !s.nonblock) {
			return s.wait(c)
		}
		return done(int64(written))
	}, nil
}

// unwritable reports whether the socket can never be written again.
func (s *socket) unwritable() (outcome, bool) {
	if e := s.take(); e != "" {
		return failed(e), true
	}
	switch s.conn.State() {
	case tcp.StateEstablished, tcp.StateCloseWait, tcp.StateSynReceived:
		if !s.noWrite {
			return outcome{}, false
		}
	case tcp.StateSynSent:
		return outcome{waits: !s.nonblock, result: -1, errno: "EAGAIN"}, !s.noWrite
	default:
	}
	return failed("EPIPE"), true
}

// write puts up to n bytes of the pattern into the send ring buffer.
func (w *world) write(s *socket, n int) int {
	tx := s.conn.Tx()
	if s.conn.State() == tcp.StateSynSent {
		return 0
	}
	n = min(n, tx.Free())
	b := make([]byte, n)
	fill(b, uint32(tx.Tail()))
	tx.Write(b)
	s.conn.Wrote(w.now)
	return n
}

func sysPoll(w *world, c *call) (step, error) {
	if len(c.args) < 1 || c.args[0].kind != valList {
		return nil, errors.New("want [{fd=…, events=…, revents=…}]")
	}
	ready := int64(0)
	for _, one := range c.args[0].list {
		fd, _ := one.fields["fd"].number()
		s := w.sockets[fd]
		if s == nil {
			return nil, fmt.Errorf("no socket %d", fd)
		}
		got := s.polled(one.fields["events"])
		if want := one.fields["revents"]; want.kind == valWords || want.kind == valInt {
			for _, word := range []string{"POLLIN", "POLLOUT", "POLLERR", "POLLHUP", "POLLRDHUP"} {
				if want.has(word) != got[word] {
					return nil, fmt.Errorf("%s of descriptor %d is %v", word, fd, got[word])
				}
			}
		}
		if len(got) > 0 {
			ready++
		}
	}
	return at(done(ready)), nil
}

// polled returns the requested events of poll that are true.
func (s *socket) polled(asked value) map[string]bool {
	got := map[string]bool{}
	set := func(name string, on bool) {
		if on && (asked.has(name) || name == "POLLERR" || name == "POLLHUP") {
			got[name] = true
		}
	}
	if s.listener != nil {
		set("POLLIN", s.listener.Queued() > 0)
		return got
	}
	if s.conn == nil {
		set("POLLHUP", true)
		return got
	}
	state := s.conn.State()
	closed := state == tcp.StateClosed || state == tcp.StateTimeWait
	eof := s.conn.ReadDone() || closed || s.noRead
	open := state == tcp.StateEstablished || state == tcp.StateCloseWait
	set("POLLIN", s.conn.Rx().Len() > 0 || eof)
	set("POLLRDHUP", eof)
	set("POLLOUT", closed || s.noWrite || open && s.conn.Tx().Free() > 0)
	set("POLLERR", !s.reported && s.conn.Err() != nil)
	set("POLLHUP", closed || eof && s.noWrite)
	return got
}

func sysIoctl(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	if s.conn == nil || len(c.args) != 3 {
		return nil, errors.New("want a connection, a request and [n]")
	}
	var have int
	switch i := s.conn.Info(); {
	case c.word(1, "SIOCINQ"), c.word(1, "FIONREAD"):
		have = i.Unread
	case c.word(1, "SIOCOUTQ"):
		have = s.conn.Tx().Len()
	case c.word(1, "SIOCOUTQNSD"):
		have = i.NotSentBytes
	default:
		return nil, errors.New("want SIOCINQ, SIOCOUTQ or SIOCOUTQNSD")
	}
	if want, ok := c.args[2].number(); !ok || want != int64(have) {
		return nil, fmt.Errorf("the value is [%d]", have)
	}
	return at(done(0)), nil
}

func sysFcntl(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	switch {
	case c.word(1, "F_SETFL"):
		s.nonblock = c.word(2, "O_NONBLOCK")
		return at(done(0)), nil
	case c.word(1, "F_GETFL"):
		flags := int64(2) // O_RDWR
		if s.nonblock {
			flags |= 0x800
		}
		return at(done(flags)), nil
	}
	return nil, errors.New("want F_GETFL or F_SETFL")
}
