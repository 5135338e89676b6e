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

// options are the socket options. Each takes its value from the settings of the script.
var options = map[string]func(w *world, s *socket, o *tcp.Sockopts){
	"SO_REUSEADDR": inert, "SO_REUSEPORT": inert, "IP_RECVERR": inert, "SO_LINGER": inert,
	"TCP_CONGESTION": inert, // see apply
	"TCP_NODELAY": func(_ *world, s *socket, o *tcp.Sockopts) {
		o.NoDelay = s.values["TCP_NODELAY"] != 0
	},
	"TCP_CORK": func(_ *world, s *socket, o *tcp.Sockopts) { o.Cork = s.values["TCP_CORK"] != 0 },
	"TCP_MAXSEG": func(_ *world, s *socket, o *tcp.Sockopts) {
		o.MaxSeg = int(s.values["TCP_MAXSEG"])
	},
	"TCP_USER_TIMEOUT": func(_ *world, s *socket, o *tcp.Sockopts) {
		o.UserTimeout = time.Duration(s.values["TCP_USER_TIMEOUT"]) * time.Millisecond
	},
	"SO_RCVBUF": setBuffers, "SO_SNDBUF": setBuffers,
	"SO_KEEPALIVE": setKeepalive, "TCP_KEEPIDLE": setKeepalive, "TCP_KEEPINTVL": setKeepalive,
	"TCP_KEEPCNT": setKeepalive,
}

// inert is an option without effect on the connection. With only one program all addresses may be
// reused, and close implements lingering.
func inert(*world, *socket, *tcp.Sockopts) {}

// setBuffers sets a buffer's size to the given number. Linux doubles the number for its overhead.
func setBuffers(_ *world, s *socket, o *tcp.Sockopts) {
	if n := s.values["SO_RCVBUF"]; n > 0 && n < maxNumber {
		o.RecvBuffer = int(n)
	}
	if n := s.values["SO_SNDBUF"]; n > 0 && n < maxNumber {
		o.SendBuffer = int(n)
	}
}

func setKeepalive(w *world, s *socket, o *tcp.Sockopts) { o.Keepalive = w.keepalive(s) }

// apply sets an option of a connection.
func (w *world) apply(s *socket, is setting) error {
	o := s.conn.Sockopts()
	if is.name != "TCP_CONGESTION" {
		options[is.name](w, s, &o)
	} else if o.Congestion = is.arg.text; is.arg.kind != valString {
		return errors.New("want a name")
	}
	return s.conn.SetSockopts(w.now, o)
}

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
		return nil, fmt.Errorf("unknown option %s", o.name)
	}
	if n, ok := o.arg.number(); ok {
		s.values[o.name] = n
	}
	if o.name == "SO_LINGER" {
		if err := s.setLinger(o.arg); err != nil {
			return nil, err
		}
	}
	s.set = append(slices.Clip(s.set), o)
	if s.listener != nil {
		return at(done(0)), w.applyListener(s)
	}
	if s.conn != nil {
		err = w.apply(s, o)
	}
	return at(done(0)), err
}

// applyAll sets on a new connection the options that the script has set before.
func (w *world) applyAll(s *socket) error {
	for _, o := range s.set {
		if err := w.apply(s, o); err != nil {
			return fmt.Errorf("%s: %w", o.name, err)
		}
	}
	return nil
}

// applyListener sets a listener's options, which its connections inherit.
func (w *world) applyListener(s *socket) error {
	var o tcp.Sockopts
	for _, set := range options {
		set(w, s, &o)
	}
	return s.listener.SetSockopts(o)
}

// connect starts a connection with the socket's options.
func (w *world) connect(s *socket, remote netip.AddrPort) (*tcp.Conn, error) {
	return w.host.Connect(w.now, remote, s.port)
}

// setLinger records how long close waits: {onoff=1, linger=0}.
func (s *socket) setLinger(v value) error {
	if len(v.list) == 1 {
		v = v.list[0]
	}
	onoff, ok := v.fields["onoff"].number()
	linger, ok2 := v.fields["linger"].number()
	if !ok || !ok2 || linger < 0 || linger > 1<<20 {
		return errors.New("want {onoff=…, linger=…}")
	}
	delete(s.values, "linger")
	if onoff != 0 {
		s.values["linger"] = linger
	}
	return nil
}

// keepalive combines SO_KEEPALIVE with TCP's three keepalive options.
func (w *world) keepalive(s *socket) tcp.Keepalive {
	k := tcp.Keepalive{}
	if s.values["SO_KEEPALIVE"] == 0 {
		return k
	}
	k = w.set.keepalive
	if n, ok := s.values["TCP_KEEPIDLE"]; ok {
		k.Idle = time.Duration(n) * time.Second
	}
	if n, ok := s.values["TCP_KEEPINTVL"]; ok {
		k.Interval = time.Duration(n) * time.Second
	}
	if n, ok := s.values["TCP_KEEPCNT"]; ok {
		k.Count = int(n)
	}
	return k
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
			return nil, fmt.Errorf("%s has no string value", option)
		}
		if have := s.conn.Info().CongestionControl; have != want.text {
			return nil, fmt.Errorf("the value is %q", have)
		}
		return at(done(0)), nil
	}
	have, err := s.option(option)
	if err != nil {
		return nil, err
	}
	if n, ok := want.number(); ok && n != have || !ok && !want.has(errnoName(have)) {
		return nil, fmt.Errorf("the value is [%d] (%s)", have, errnoName(have))
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
		return int64(s.conn.Info().SndMSS), nil
	}
	if options[name] == nil {
		return 0, fmt.Errorf("unknown option %s", name)
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
