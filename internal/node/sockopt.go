package node

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/stack"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// The methods for socket options have the names of net.TCPConn's methods where those exist.

// set runs f in the loop, unless the connection is gone.
func (c *Conn) set(f func(now clock.Time) error) error {
	if c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	return run(c, "set", func(now clock.Time) error {
		if failure := c.failure.Load(); c.gone && failure != nil {
			return *failure
		} else if c.gone {
			return net.ErrClosed
		}
		return f(now)
	})
}

// run runs f in the loop. Its error names the operation.
func run(c *Conn, op string, f func(now clock.Time) error) error {
	err := c.node.Call(func(_ *stack.Stack, now clock.Time) error { return f(now) })
	if err != nil {
		return c.opError(op, NetError(err))
	}
	return nil
}

// change changes the connection's options.
func (c *Conn) change(edit func(o *tcp.Sockopts)) error {
	return c.set(func(now clock.Time) error {
		o := c.tc.Sockopts()
		edit(&o)
		return c.tc.SetSockopts(now, o)
	})
}

// SetNoDelay turns Nagle's algorithm off (true) or on.
func (c *Conn) SetNoDelay(noDelay bool) error {
	return c.change(func(o *tcp.Sockopts) { o.NoDelay = noDelay })
}

// SetCork delays segments that are not full by up to 200 ms. Turning it off sends them.
func (c *Conn) SetCork(on bool) error {
	return c.change(func(o *tcp.Sockopts) { o.Cork = on })
}

// SetMaxSeg limits the payload of a segment; zero removes the limit.
func (c *Conn) SetMaxSeg(bytes int) error {
	return c.change(func(o *tcp.Sockopts) { o.MaxSeg = bytes })
}

// SetUserTimeout ends the connection with ETIMEDOUT if data stays unacknowledged, or waits for the
// peer's window, for that long. Zero means that the number of retransmissions decides. With
// advertise, the connection sends the timeout to the peer (RFC 5482).
func (c *Conn) SetUserTimeout(d time.Duration, advertise bool) error {
	return c.change(func(o *tcp.Sockopts) { o.UserTimeout, o.AdvertiseTimeout = d, advertise })
}

// defaultKeepalive is the default of Go's net package: a probe every 15 s.
var defaultKeepalive = tcp.Keepalive{Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 9}

// Keepalive configures the probes that detect a dead peer.
type Keepalive = tcp.Keepalive

// SetKeepalive configures keep-alive probes. The zero Keepalive disables them.
func (c *Conn) SetKeepalive(k Keepalive) error {
	return c.change(func(o *tcp.Sockopts) { o.Keepalive = k })
}

// SetKeepAlive turns keep-alive probes on or off.
func (c *Conn) SetKeepAlive(on bool) error {
	k := tcp.Keepalive{}
	if on {
		k = defaultKeepalive
	}
	return c.SetKeepalive(k)
}

// SetKeepAlivePeriod sets the idle time before the first probe and the time between probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetKeepalive(Keepalive{Idle: d, Interval: d})
}

// SetKeepAliveConfig sets the times and the number of probes, as net.TCPConn does. Zero and
// negative values mean package net's defaults.
func (c *Conn) SetKeepAliveConfig(cfg net.KeepAliveConfig) error {
	if !cfg.Enable {
		return c.SetKeepAlive(false)
	}
	k := defaultKeepalive
	orDefault := func(v, d time.Duration) time.Duration {
		if v > 0 {
			return v
		}
		return d
	}
	k.Idle, k.Interval = orDefault(cfg.Idle, k.Idle), orDefault(cfg.Interval, k.Interval)
	if cfg.Count > 0 {
		k.Count = cfg.Count
	}
	return c.SetKeepalive(k)
}

// SetReadBuffer sets the size of the receive buffer in bytes and ends its automatic tuning.
func (c *Conn) SetReadBuffer(bytes int) error {
	if err := tcp.CheckBuffer(bytes); err != nil {
		return c.opError("set", NetError(err))
	}
	return c.change(func(o *tcp.Sockopts) { o.RecvBuffer = bytes })
}

// SetWriteBuffer sets the size of the send buffer in bytes and ends its automatic tuning.
func (c *Conn) SetWriteBuffer(bytes int) error {
	if err := tcp.CheckBuffer(bytes); err != nil {
		return c.opError("set", NetError(err))
	}
	return c.change(func(o *tcp.Sockopts) { o.SendBuffer = bytes })
}

// SetTOS sets the traffic class of outgoing packets. ECN uses the two low bits, so SetTOS ignores
// them.
func (c *Conn) SetTOS(tos uint8) error {
	return c.change(func(o *tcp.Sockopts) { o.TOS = tos })
}

// SetCongestionControl changes the congestion control algorithm.
func (c *Conn) SetCongestionControl(name string) error {
	return c.change(func(o *tcp.Sockopts) { o.Congestion = name })
}

// Info returns the connection's state. After the connection's end it returns the last state.
func (c *Conn) Info() (i tcp.Info, err error) {
	err = run(c, "info", func(clock.Time) error { i = c.tc.Info(); return nil })
	return i, err
}

// Socket returns a snapshot of the connection. After the connection's end it returns the last one.
func (c *Conn) Socket() (s control.Socket, err error) {
	err = run(c, "info", func(now clock.Time) error {
		s = control.Socket{SID: c.sid, Local: c.Local(), Remote: c.Remote()}
		stack.DescribeConn(&s, c.tc, true, now)
		return nil
	})
	return s, err
}

// FileDigest reports whether both ends have offered a file's digest. It is false on a closed node.
func (c *Conn) FileDigest() (agreed bool) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error {
		agreed = c.tc.Sockopts().FileDigest
		return nil
	})
	return agreed
}

// SetLinger says what Close does with undelivered data. If sec is negative, which is the default,
// Close delivers it in the background. If zero, Close discards it and resets the connection. If
// positive, Close waits up to sec seconds for the delivery, and then discards the rest.
func (c *Conn) SetLinger(sec int) error {
	if c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	c.linger.Store(int64(max(sec, -1)) + 1)
	return nil
}

// closeLingering is the Close of a connection with a SetLinger of zero or more seconds.
func (c *Conn) closeLingering(limit time.Duration) error {
	if limit == 0 {
		c.finishWrites(abort)
		return nil
	}
	c.finishWrites(closeBoth)
	over := make(chan struct{})
	timer := c.node.Time.AfterFunc(limit, func() { close(over) })
	defer timer.Stop()
	defer c.node.Time.settle()
	select {
	case <-c.delivered.passed():
	case <-c.ended.passed():
	case <-c.node.stopped:
	case <-over:
		c.tell(abort)
		return c.opError("close", fmt.Errorf("not closed within %v: %w", limit,
			os.ErrDeadlineExceeded))
	}
	return nil
}

// SetOptions sets the options of connections that are accepted from now on.
func (l *Listener) SetOptions(o tcp.Sockopts) error {
	if err := NetError(l.node.Call(func(*stack.Stack, clock.Time) error {
		return l.tl.SetSockopts(o)
	})); err != nil {
		return &net.OpError{Op: "set", Net: "tcp", Addr: l.Addr(), Err: err}
	}
	return nil
}
