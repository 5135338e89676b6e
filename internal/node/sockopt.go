package node

import (
	"net"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// set has the loop change the connection.
func (c *Conn) set(f func(now clock.Time, tc *tcp.Conn) error) error {
	if c.closed.Load() {
		return c.opError("set", net.ErrClosed)
	}
	var err error
	callErr := c.node.call(func(now clock.Time) {
		if !c.gone {
			err = f(now, c.tc)
		}
	})
	if err = firstError(callErr, err); err != nil {
		return c.opError("set", err)
	}
	return nil
}

// SetNoDelay turns Nagle's algorithm off or on.
func (c *Conn) SetNoDelay(on bool) error {
	return c.set(func(_ clock.Time, tc *tcp.Conn) error { tc.SetNoDelay(on); return nil })
}

// SetCongestionControl changes the algorithm; the new one starts from the window
// that the old one had reached.
func (c *Conn) SetCongestionControl(name string) error {
	return c.set(func(_ clock.Time, tc *tcp.Conn) error { return tc.SetCongestion(name) })
}

// SetKeepalive sets how a silent peer is asked; zero: not at all.
func (c *Conn) SetKeepalive(k Keepalive) error {
	return c.set(func(now clock.Time, tc *tcp.Conn) error {
		tc.SetKeepalive(now, k)
		return nil
	})
}

// Keepalive is how a silent peer is asked.
type Keepalive = tcp.Keepalive

// Socket returns what an operator sees of the connection.
func (c *Conn) Socket() (s control.Socket, err error) {
	callErr := c.node.call(func(now clock.Time) {
		if c.gone {
			err = net.ErrClosed
			return
		}
		s = c.node.stack.SocketInfo(c.sid, now)
	})
	if err = firstError(callErr, err); err != nil {
		return s, c.opError("info", err)
	}
	return s, nil
}
