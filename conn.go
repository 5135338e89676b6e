package tidepool

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Conn is a TCP connection. It implements net.Conn. Its options have the names and meanings of
// net.TCPConn's. Errors are *net.OpErrors; errors.Is finds os.ErrDeadlineExceeded, net.ErrClosed
// and the system's error numbers in them: syscall.ECONNREFUSED, ECONNRESET, ETIMEDOUT and so on.
type Conn struct{ conn *node.Conn }

var _ net.Conn = (*Conn)(nil)

// Read waits for data and copies it into p. It returns io.EOF when the peer has closed its side and
// all data has been read.
func (c *Conn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// Write copies p into the send buffer and blocks while the buffer is full. It does not wait for
// delivery.
func (c *Conn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// Close closes both directions. It returns at once unless SetLinger says otherwise, and data that
// was written is still delivered. If received data was not read, the peer gets a reset.
func (c *Conn) Close() error { return c.inner().Close() }

// Reset resets the connection at both ends, as a firewall does that has lost its state: the peer
// gets a RST, and calls at both ends return syscall.ECONNRESET.
func (c *Conn) Reset() error { return node.Reset(c.inner()) }

// CloseWrite sends a FIN after all data that was written (a half-close). Read still works; Write
// fails with syscall.EPIPE.
func (c *Conn) CloseWrite() error { return c.inner().CloseWrite() }

// CloseRead discards received data that was not read and all that arrives later: Read returns
// io.EOF. The peer is not informed and can still send.
func (c *Conn) CloseRead() error { return c.inner().CloseRead() }

// LocalAddr returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline. After the deadline, pending and later calls
// fail with os.ErrDeadlineExceeded until another deadline is set. Deadlines are times of the node's
// Clock, if it has one. The zero time means no deadline.
func (c *Conn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline sets the deadline of Read. The zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline sets the deadline of Write. The zero time means no deadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// Listener accepts TCP connections. It implements net.Listener.
type Listener struct{ listener *node.Listener }

var _ net.Listener = (*Listener)(nil)

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err // a nil *Conn would be a non-nil net.Conn
	}
	return c, nil
}

// AcceptTCP is like Accept, but returns a *Conn.
func (l *Listener) AcceptTCP() (*Conn, error) {
	return connOf(l.inner().AcceptTCP())
}

func connOf(c *node.Conn, err error) (*Conn, error) {
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// Close stops listening. Connections that were not accepted are reset.
func (l *Listener) Close() error { return l.inner().Close() }

// Addr returns a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.inner().Addr() }

// SetDeadline sets the deadline of Accept. The zero time means no deadline.
func (l *Listener) SetDeadline(t time.Time) error { return l.inner().SetDeadline(t) }

// SetNoDelay with true, the default, sends small segments at once. With false it enables Nagle's
// algorithm.
func (c *Conn) SetNoDelay(noDelay bool) error { return c.inner().SetNoDelay(noDelay) }

// SetCork with true holds back segments that are not full for up to 200 ms, as TCP_CORK does. With
// false it sends them.
func (c *Conn) SetCork(cork bool) error { return c.inner().SetCork(cork) }

// SetMaxSeg limits the payload of segments that are sent from now on, in bytes. 0: only the path
// limits it.
func (c *Conn) SetMaxSeg(bytes int) error { return c.inner().SetMaxSeg(bytes) }

// SetCongestionControl changes the algorithm to one that TCP.CongestionControl lists. The new
// algorithm starts with the current window. Other names return syscall.EINVAL.
func (c *Conn) SetCongestionControl(name string) error {
	return c.inner().SetCongestionControl(name)
}

// SetUserTimeout limits how long written data may stay unacknowledged before the connection fails
// with ETIMEDOUT. 0: the number of retransmissions is the limit.
func (c *Conn) SetUserTimeout(d time.Duration) error { return c.inner().SetUserTimeout(d, false) }

// SetKeepAlive enables or disables keep-alive probes.
func (c *Conn) SetKeepAlive(keepalive bool) error { return c.inner().SetKeepAlive(keepalive) }

// SetKeepAlivePeriod sets the idle time before the first keep-alive probe and the time between
// probes.
func (c *Conn) SetKeepAlivePeriod(d time.Duration) error { return c.inner().SetKeepAlivePeriod(d) }

// SetKeepAliveConfig sets the idle time, the interval and the number of keep-alive probes. Fields
// that are not positive mean the defaults of package net: 15 s, 15 s and 9 probes.
func (c *Conn) SetKeepAliveConfig(config net.KeepAliveConfig) error {
	return c.inner().SetKeepAliveConfig(config)
}

// SetLinger sets what Close does with data that is not yet delivered. If sec is negative, the
// default, Close returns at once and the node continues to deliver. If sec is 0, the connection is
// reset. If sec is positive, Close waits up to sec seconds for the acknowledgment, and then resets
// the connection.
func (c *Conn) SetLinger(sec int) error { return c.inner().SetLinger(sec) }

// SetReadBuffer sets the size of the receive buffer in bytes, and disables its automatic growth.
// Unlike Linux, the node does not double the size. A size out of range returns syscall.EINVAL.
func (c *Conn) SetReadBuffer(bytes int) error { return c.inner().SetReadBuffer(bytes) }

// SetWriteBuffer is SetReadBuffer for the send buffer.
func (c *Conn) SetWriteBuffer(bytes int) error { return c.inner().SetWriteBuffer(bytes) }

// SetTOS sets the TOS field of the IP header of packets that are sent from now on. Its lower two
// bits are ECN's and not changed.
func (c *Conn) SetTOS(tos uint8) error { return c.inner().SetTOS(tos) }

// ConnInfo is the state of a connection. Fields that exist in Linux's TCP_INFO have the same names
// in Go's form: tcpi_snd_cwnd is SndCwnd. Windows are in bytes, where Linux counts segments; rates
// are in bits per second. internal/tcp/recovery/info.go describes each field.
type ConnInfo struct {
	State string // the name from RFC 9293 §3.3.2, with underscores
	control.Info
}

// String returns a summary in one line, like ss -ti.
func (i ConnInfo) String() string {
	var b strings.Builder
	word := func(format string, args ...any) { fmt.Fprintf(&b, " "+format, args...) }
	b.WriteString(i.State)
	word("%s", i.CongestionControl)
	if i.SndWScale >= 0 {
		word("wscale:%d,%d", i.SndWScale, i.RcvWScale)
	}
	word("rto:%v rtt:%v/%v mss:%d pmtu:%d cwnd:%d", i.RTO, i.RTT, i.RTTVar, i.SndMSS, i.PMTU,
		i.SndCwnd)
	if i.SndSsthresh > 0 {
		word("ssthresh:%d", i.SndSsthresh)
	}
	word("bytes_sent:%d bytes_acked:%d bytes_received:%d", i.BytesSent, i.BytesAcked,
		i.BytesReceived)
	if i.TotalRetrans > 0 {
		word("retrans:%d/%d", i.Retrans, i.TotalRetrans)
	}
	word("pipe:%d notsent:%d unread:%d snd_wnd:%d rcv_wnd:%d delivery_rate:%dbps limited:%s",
		i.Pipe, i.NotSentBytes, i.Unread, i.SndWnd, i.RcvWnd, i.DeliveryRate, i.Limited)
	return b.String()
}

// Info returns the connection's state. After the connection has ended it returns the last state. It
// fails once the node is closed.
func (c *Conn) Info() (ConnInfo, error) {
	s, err := c.inner().Socket()
	if err != nil {
		return ConnInfo{}, err
	}
	return ConnInfo{s.State, *s.Info}, nil
}
