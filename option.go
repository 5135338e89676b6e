package tidepool

import (
	"net"
	"time"
)

// SetNoDelay sends small segments at once, which is the default, or lets them
// wait while data is unacknowledged.
func (c *Conn) SetNoDelay(noDelay bool) error { return c.inner().SetNoDelay(noDelay) }

// SetCork holds back segments that are not full, for 200 ms at the most, or lets
// them go: TCP_CORK.
func (c *Conn) SetCork(cork bool) error { return c.inner().SetCork(cork) }

// SetMaxSeg bounds the payload of the segments sent from now on, in bytes; 0:
// only the path does.
func (c *Conn) SetMaxSeg(bytes int) error { return c.inner().SetMaxSeg(bytes) }

// SetCongestionControl changes the algorithm to one of TCP.CongestionControl's names; the
// new one starts from the window that the old one had reached. Another name is
// syscall.EINVAL.
func (c *Conn) SetCongestionControl(name string) error {
	return c.inner().SetCongestionControl(name)
}

// SetUserTimeout bounds how long what was written may stay unacknowledged before
// the connection fails with ETIMEDOUT; 0: the number of retries decides.
func (c *Conn) SetUserTimeout(d time.Duration) error { return c.inner().SetUserTimeout(d, false) }

// SetKeepAlive has a silent peer asked whether it is still there, or no more.
func (c *Conn) SetKeepAlive(keepalive bool) error { return c.inner().SetKeepAlive(keepalive) }

// SetKeepAlivePeriod sets how long the peer has to be silent before it is asked,
// and the time between the questions.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error { return c.inner().SetKeepAlivePeriod(d) }

// SetKeepAliveConfig sets when and how often a silent peer is asked. A field that
// is not positive is net's default: 15 s, 15 s and 9 times.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.inner().SetKeepAliveConfig(config)
}

// SetLinger sets what Close does about data that was not delivered yet. If sec is
// negative, the default, Close returns at once and the node goes on delivering. If
// it is 0 the connection is reset. If it is positive, Close waits so many seconds
// for the peer's acknowledgment, and then resets the connection.
func (c *Conn) SetLinger(sec int) error { return c.inner().SetLinger(sec) }

// SetReadBuffer sets the receive buffer in bytes, as net has it and not doubled as Linux
// does. It no longer tunes itself then. A size out of bounds is syscall.EINVAL.
func (c *Conn) SetReadBuffer(bytes int) error { return c.inner().SetReadBuffer(bytes) }

// SetWriteBuffer sets the send buffer in bytes, as SetReadBuffer sets the other.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.inner().SetWriteBuffer(bytes) }

// SetTOS sets the traffic class of what is sent from now on: the field of the IP
// header, whose lower two bits are left to ECN.
func (c *Conn) SetTOS(tos uint8) error { return c.inner().SetTOS(tos) }
