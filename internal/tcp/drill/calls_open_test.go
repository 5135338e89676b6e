package drill

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// add gives a socket the number that the script expects.
func (w *world) add(c *call, s *socket) (outcome, error) {
	if c.result >= 0 && w.sockets[c.result] != nil {
		return outcome{}, fmt.Errorf("descriptor %d is in use", c.result)
	}
	if s.values == nil {
		s.values = map[string]int64{}
	}
	w.sockets[c.result] = s
	return done(c.result), nil
}

func sysSocket(w *world, c *call) (step, error) {
	if !c.word(1, "SOCK_STREAM") {
		return nil, errors.New("only SOCK_STREAM")
	}
	o, err := w.add(c, &socket{nonblock: c.word(1, "SOCK_NONBLOCK")})
	return at(o), err
}

func sysBind(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	s.port = w.set.bind
	if len(c.args) > 1 && c.args[1].kind == valStruct {
		if n, ok := c.args[1].fields["sin_port"].number(); ok {
			s.port = uint16(n)
		}
	}
	return at(done(0)), nil
}

func sysListen(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	backlog, err := c.at(1)
	if err != nil {
		return nil, err
	}
	l, err := w.host.Listen(netip.AddrPortFrom(netip.IPv4Unspecified(), s.port), int(backlog))
	if err != nil {
		return at(failed(errno(err))), nil
	}
	s.listener = l
	return at(done(0)), w.applyListener(s)
}

func sysAccept(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	if s.listener == nil {
		return at(failed("EINVAL")), nil
	}
	return func() outcome {
		conn, ok := s.listener.Accept()
		if !ok {
			return s.wait(c)
		}
		child := &socket{conn: conn, nonblock: c.word(3, "SOCK_NONBLOCK")}
		child.values = maps.Clone(s.values)
		o, err := w.add(c, child)
		for _, set := range s.set {
			if set.name == "TCP_CONGESTION" { // the others are the listener's
				err = errors.Join(err, w.apply(child, set))
			}
		}
		if err != nil {
			return failed(err.Error())
		}
		w.info = conn
		return o
	}, nil
}

func sysConnect(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	if s.conn != nil && s.conn.State() != tcp.StateClosed {
		return func() outcome { return s.connected(c) }, nil
	}
	remote := netip.AddrPortFrom(w.set.remote, w.set.connect)
	conn, err := w.connect(s, remote)
	if err != nil {
		return at(failed(errno(err))), nil
	}
	s.conn, s.reported = conn, false
	w.info = conn
	w.current = w.peer(conn.Tuple())
	if err := w.applyAll(s); err != nil {
		return nil, err
	}
	begun := false
	return func() outcome {
		if s.nonblock && !begun {
			begun = true
			return failed("EINPROGRESS")
		}
		return s.connected(c)
	}, nil
}

// connected returns the state of a connect call.
func (s *socket) connected(c *call) outcome {
	switch s.conn.State() {
	case tcp.StateSynSent, tcp.StateSynReceived:
		if s.nonblock {
			return failed("EALREADY")
		}
		return s.wait(c)
	case tcp.StateClosed:
		if e := s.take(); e != "" {
			return failed(e)
		}
		return failed("ECONNABORTED")
	default:
		if s.values["connected"] == 1 {
			return failed("EISCONN")
		}
		s.values["connected"] = 1
		return done(0)
	}
}

func sysClose(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	fd, _ := c.args[0].number()
	delete(w.sockets, fd)
	linger, lingers := s.values["linger"]
	switch {
	case s.listener != nil:
		s.listener.Close(w.now)
	case s.conn != nil && lingers && linger == 0:
		s.conn.Abort(w.now)
	case s.conn != nil:
		s.conn.Close(w.now)
		if lingers && s.conn.State() != tcp.StateClosed {
			return w.linger(s.conn, w.now.Add(time.Duration(linger)*time.Second)), nil
		}
	}
	return at(done(0)), nil
}

// linger makes close wait until all data is acknowledged or its time is over.
func (w *world) linger(conn *tcp.Conn, until clock.Time) step {
	return func() outcome {
		switch conn.State() {
		case tcp.StateFinWait1, tcp.StateClosing, tcp.StateLastAck:
			return outcome{waits: w.now < until}
		default:
			return done(0)
		}
	}
}

func sysShutdown(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	if s.conn == nil || s.conn.State() == tcp.StateClosed {
		return at(failed("ENOTCONN")), nil
	}
	both := c.word(1, "SHUT_RDWR")
	if !both && !c.word(1, "SHUT_RD") && !c.word(1, "SHUT_WR") {
		return nil, errors.New("want SHUT_RD, SHUT_WR or SHUT_RDWR")
	}
	if both || c.word(1, "SHUT_RD") {
		s.noRead = true
		s.conn.CloseRead(w.now)
	}
	if both || c.word(1, "SHUT_WR") {
		s.noWrite = true
		_ = s.conn.CloseWrite(w.now)
	}
	return at(done(0)), nil
}
