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

// The socket options of a connection, under the names that net.TCPConn gives
// them where it has them.

// set has the loop change something about the connection, unless it is gone.
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

// run has the loop read or change something of the connection; op names that in errors.
func run(c *Conn, op string, f func(now clock.Time) error) error {
	err := c.node.Call(func(_ *stack.Stack, now clock.Time) error { return f(now) })
	if err != nil {
		return c.opError(op, NetError(err))
	}
	return nil
}

// change has the loop change the options of the connection.
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

// SetCork holds segments that are not full back, for 200 ms at the most, or
// lets them go.
func (c *Conn) SetCork(on bool) error {
	return c.change(func(o *tcp.Sockopts) { o.Cork = on })
}

// SetMaxSeg bounds the payload of a segment; zero removes the bound.
func (c *Conn) SetMaxSeg(bytes int) error {
	return c.change(func(o *tcp.Sockopts) { o.MaxSeg = bytes })
}

// SetUserTimeout bounds how long data may stay unacknowledged, or wait for the
// peer's window, before the connection ends with ETIMEDOUT; zero: the number of
// retries does. If tell is set the peer learns of it (RFC 5482).
func (c *Conn) SetUserTimeout(d time.Duration, tell bool) error {
	return c.change(func(o *tcp.Sockopts) { o.UserTimeout, o.TellTimeout = d, tell })
}

// defaultKeepalive is what Go's net package uses: an answer every 15 s.
var defaultKeepalive = tcp.Keepalive{Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 9}

// Keepalive is how a silent peer is asked.
type Keepalive = tcp.Keepalive

// SetKeepalive sets how a silent peer is asked; zero: not at all.
func (c *Conn) SetKeepalive(k Keepalive) error {
	return c.change(func(o *tcp.Sockopts) { o.Keepalive = k })
}

// SetKeepAlive has a silent peer asked, or no more.
func (c *Conn) SetKeepAlive(on bool) error {
	k := tcp.Keepalive{}
	if on {
		k = defaultKeepalive
	}
	return c.SetKeepalive(k)
}

// SetKeepAlivePeriod sets the time of silence before the first question, and
// between questions.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetKeepalive(Keepalive{Idle: d, Interval: d})
}

// SetKeepAliveConfig sets all of it as net.TCPConn does: a zero is Go's
// default, a negative value leaves ours.
func (c *Conn) SetKeepAliveConfig(cfg net.KeepAliveConfig) error {
	if !cfg.Enable {
		return c.SetKeepAlive(false)
	}
	k := defaultKeepalive
	choose := func(v, d time.Duration) time.Duration {
		if v > 0 {
			return v
		}
		return d
	}
	k.Idle, k.Interval = choose(cfg.Idle, k.Idle), choose(cfg.Interval, k.Interval)
	if cfg.Count > 0 {
		k.Count = cfg.Count
	}
	return c.SetKeepalive(k)
}

// SetReadBuffer sets the receive buffer in bytes, which then does not tune
// itself.
func (c *Conn) SetReadBuffer(bytes int) error {
	if err := tcp.CheckBuffer(bytes); err != nil {
		return c.opError("set", NetError(err))
	}
	return c.change(func(o *tcp.Sockopts) { o.RecvBuffer = bytes })
}

// SetWriteBuffer sets the send buffer in bytes, which then does not tune itself.
func (c *Conn) SetWriteBuffer(bytes int) error {
	if err := tcp.CheckBuffer(bytes); err != nil {
		return c.opError("set", NetError(err))
	}
	return c.change(func(o *tcp.Sockopts) { o.SendBuffer = bytes })
}

// SetTOS sets the traffic class of what is sent: six bits of DSCP above two
// that belong to ECN and are ignored.
func (c *Conn) SetTOS(tos uint8) error {
	return c.change(func(o *tcp.Sockopts) { o.TOS = tos })
}

// SetTTL sets the time to live of what is sent; zero: the default.
func (c *Conn) SetTTL(ttl uint8) error {
	return c.change(func(o *tcp.Sockopts) { o.TTL = ttl })
}

// SetCongestionControl changes the congestion control algorithm.
func (c *Conn) SetCongestionControl(name string) error {
	return c.set(func(clock.Time) error { return c.tc.SetCongestion(name) })
}

// Info returns the connection's state; after its end, the last one.
func (c *Conn) Info() (i tcp.Info, err error) {
	err = run(c, "info", func(clock.Time) error { i = c.tc.Info(); return nil })
	return i, err
}

// Socket returns what an operator sees of the connection; after its end, the last.
func (c *Conn) Socket() (s control.Socket, err error) {
	err = run(c, "info", func(now clock.Time) error {
		s = control.Socket{SID: c.sid, Local: c.Local(), Remote: c.Remote()}
		stack.DescribeConn(&s, c.tc, true, now)
		return nil
	})
	return s, err
}

// FileDigest reports whether both ends have offered a file's digest; false on a closed node.
func (c *Conn) FileDigest() (agreed bool) {
	_ = c.node.Call(func(*stack.Stack, clock.Time) error {
		agreed = c.tc.Sockopts().FileDigest
		return nil
	})
	return agreed
}

// SetLinger says what Close does about data that is not delivered yet. Negative,
// which is the default: it is delivered in the background. Zero: it is discarded
// and the peer gets a reset. Positive: Close waits for it, so many seconds, and
// then discards what is left.
func (c *Conn) SetLinger(sec int) error {
	if c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	c.linger.Store(int64(max(sec, -1)) + 1)
	return nil
}

// closeLingering is Close after SetLinger with zero or more seconds.
func (c *Conn) closeLingering(limit time.Duration) error {
	if limit == 0 {
		c.finishWrites(abort)
		return nil
	}
	c.finishWrites(closeBoth)
	over := make(chan struct{})
	timer := c.node.Time.AfterFunc(limit, func() { close(over) })
	defer timer.Stop()
	select {
	case <-c.delivered.passed():
	case <-c.ended.passed():
	case <-c.node.stopped:
	case <-over:
		c.tell(abort)
		return c.opError("close", fmt.Errorf("after %v: %w", limit, os.ErrDeadlineExceeded))
	}
	return nil
}

// SetOptions sets what connections accepted from now on begin with.
func (l *Listener) SetOptions(o tcp.Sockopts) error {
	if err := NetError(l.node.Call(func(*stack.Stack, clock.Time) error {
		return l.tl.SetSockopts(o)
	})); err != nil {
		return &net.OpError{Op: "set", Net: "tcp", Addr: l.Addr(), Err: err}
	}
	return nil
}
