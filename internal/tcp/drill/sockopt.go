package drill

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// setting is one setsockopt.
type setting struct {
	name string
	arg  value
}

// options are the socket options. Each applies one to a socket that has a
// connection; on others they wait until it has.
var options = map[string]func(w *world, s *socket, v value) error{
	"SO_REUSEADDR": inert, "SO_REUSEPORT": inert, "IP_RECVERR": inert, "TCP_QUICKACK": unknown,
	"TCP_NODELAY": setNoDelay, "TCP_CONGESTION": setCongestion,
	"SO_KEEPALIVE": setKeepalive, "TCP_KEEPIDLE": setKeepalive, "TCP_KEEPINTVL": setKeepalive,
	"TCP_KEEPCNT": setKeepalive,
}

// inert is an option that changes nothing here: in a world of one program all
// addresses may be used again.
func inert(*world, *socket, value) error { return nil }

func unknown(*world, *socket, value) error { return errors.New("not an option of this TCP") }

func sysSetsockopt(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	if len(c.args) < 4 || c.args[2].kind != valWords {
		return nil, errors.New("want a level, an option and [value]")
	}
	o := setting{name: c.args[2].words[0], arg: c.args[3]}
	if options[o.name] == nil {
		return nil, fmt.Errorf("no option %s", o.name)
	}
	if n, ok := o.arg.number(); ok {
		s.values[o.name] = n
	}
	s.set = append(slices.Clip(s.set), o)
	if s.listener != nil {
		return at(done(0)), w.applyListener(s)
	}
	if s.conn != nil {
		err = options[o.name](w, s, o.arg)
	}
	return at(done(0)), err
}

// applyAll gives a new connection the options that were set before.
func (w *world) applyAll(s *socket) error {
	for _, o := range s.set {
		if err := options[o.name](w, s, o.arg); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// applyListener gives a listener what its connections begin with.
func (w *world) applyListener(*socket) error { return nil }

// connect begins a connection with what the socket's options say about its SYN.
func (w *world) connect(s *socket, remote netip.AddrPort) (*tcp.Conn, error) {
	return w.host.Connect(w.now, remote, s.port)
}

// wrote tells the connection that there is more to send.
func (w *world) wrote(c *tcp.Conn, _ bool) { c.Wrote(w.now) }

func setNoDelay(_ *world, s *socket, v value) error {
	n, ok := v.number()
	if !ok {
		return errors.New("want [0] or [1]")
	}
	s.conn.SetNoDelay(n != 0)
	return nil
}

func setCongestion(_ *world, s *socket, v value) error {
	if v.kind != valString {
		return errors.New("want a name")
	}
	return s.conn.SetCongestion(v.text)
}

// setKeepalive combines SO_KEEPALIVE with the three numbers of TCP.
func setKeepalive(w *world, s *socket, _ value) error {
	k := tcp.Keepalive{}
	if s.values["SO_KEEPALIVE"] != 0 {
		k = w.set.keepalive
		for name, to := range map[string]*time.Duration{
			"TCP_KEEPIDLE": &k.Idle, "TCP_KEEPINTVL": &k.Interval,
		} {
			if n, ok := s.values[name]; ok {
				*to = time.Duration(n) * time.Second
			}
		}
		if n, ok := s.values["TCP_KEEPCNT"]; ok {
			k.Count = int(n)
		}
	}
	s.conn.SetKeepalive(w.now, k)
	return nil
}

func sysGetsockopt(w *world, c *call) (step, error) {
	s, err := w.of(c)
	if err != nil {
		return nil, err
	}
	if len(c.args) < 4 || c.args[2].kind != valWords {
		return nil, errors.New("want a level, an option and [value]")
	}
	option, want := c.args[2].words[0], c.args[3]
	if len(want.list) == 1 {
		want = want.list[0]
	}
	if want.kind == valString {
		if option != "TCP_CONGESTION" || s.conn == nil {
			return nil, fmt.Errorf("no text is the value of %s", option)
		}
		if have := s.conn.Info().Congestion; have != want.text {
			return nil, fmt.Errorf("it is %q", have)
		}
		return at(done(0)), nil
	}
	have, err := s.option(option)
	if err != nil {
		return nil, err
	}
	if n, ok := want.number(); ok && n != have || !ok && !want.has(errnoName(have)) {
		return nil, fmt.Errorf("it is [%d] (%s)", have, errnoName(have))
	}
	return at(done(0)), nil
}

// option returns a socket option's value.
func (s *socket) option(name string) (int64, error) {
	switch name {
	case "SO_ERROR":
		return errnos[s.take()], nil
	case "TCP_MAXSEG":
		if s.conn == nil {
			return 536, nil
		}
		return int64(s.conn.Info().SendMSS), nil
	}
	if options[name] == nil {
		return 0, fmt.Errorf("no option %s", name)
	}
	return s.values[name], nil
}

// errnos are Linux's numbers.
var errnos = map[string]int64{
	"": 0, "EAGAIN": 11, "EPIPE": 32, "ENETUNREACH": 101, "ECONNABORTED": 103, "ECONNRESET": 104,
	"ETIMEDOUT": 110, "ECONNREFUSED": 111, "EHOSTUNREACH": 113,
}

func errnoName(n int64) string {
	for name, v := range errnos {
		if v == n {
			return name
		}
	}
	return ""
}
