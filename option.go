package tidepool

import (
	"net"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// SetNoDelay sends small segments at once, which is the default, or lets them
// wait while data is unacknowledged.
func (c *Conn) SetNoDelay(noDelay bool) error { return c.conn.SetNoDelay(noDelay) }

// SetCongestionControl changes the algorithm; the new one starts from the window
// that the old one had reached.
func (c *Conn) SetCongestionControl(name string) error { return c.conn.SetCongestionControl(name) }

// SetKeepAlive has the peer asked whether it is still there, or no more.
func (c *Conn) SetKeepAlive(keepalive bool) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: keepalive})
}

// SetKeepAlivePeriod sets how long the peer has to be silent before it is asked,
// and the time between the questions.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error {
	return c.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: d, Interval: d})
}

// What a zero field of net.KeepAliveConfig means.
const (
	keepAlivePeriod = 15 * time.Second
	keepAliveCount  = 9
)

// SetKeepAliveConfig sets when and how often a silent peer is asked. A zero
// field, and a negative one, is net's default: 15 s, 15 s and 9 times.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	k := node.Keepalive{Idle: config.Idle, Interval: config.Interval, Count: config.Count}
	if k.Idle <= 0 {
		k.Idle = keepAlivePeriod
	}
	if k.Interval <= 0 {
		k.Interval = keepAlivePeriod
	}
	if k.Count <= 0 {
		k.Count = keepAliveCount
	}
	if !config.Enable {
		k = node.Keepalive{}
	}
	return c.conn.SetKeepalive(k)
}
