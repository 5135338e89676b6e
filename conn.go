package tidepool

import (
	"net"
	"time"

	"github.com/tidepool-net/tidepool/internal/node"
)

// Conn is a TCP connection. It implements net.Conn, and its options have the
// names and meanings that they have in net.TCPConn. Its errors are *net.OpErrors
// in which errors.Is finds os.ErrDeadlineExceeded, net.ErrClosed and the numbers
// of the system: syscall.ECONNREFUSED, ECONNRESET, ETIMEDOUT and so on.
type Conn struct{ conn *node.Conn }

var _ net.Conn = (*Conn)(nil)

// Read waits for data and copies it into p. It returns io.EOF when the peer has
// closed its side and everything was read.
func (c *Conn) Read(p []byte) (int, error) { return c.inner().Read(p) }

// Write copies p into the send buffer, waiting while that is full. That it
// returns says nothing about delivery.
func (c *Conn) Write(p []byte) (int, error) { return c.inner().Write(p) }

// Close closes both directions and returns at once, unless SetLinger says
// otherwise. What was written is still delivered; if data was left unread, the peer
// gets a reset.
func (c *Conn) Close() error { return c.inner().Close() }

// CloseWrite ends what the peer reads, behind all that was written: a half-close. Reading
// goes on, and Write fails with syscall.EPIPE.
func (c *Conn) CloseWrite() error { return c.inner().CloseWrite() }

// CloseRead discards what comes from now on, and what was not read yet: Read returns
// io.EOF. The peer is not told, and not stalled.
func (c *Conn) CloseRead() error { return c.inner().CloseRead() }

// LocalAddr returns a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.inner().LocalAddr() }

// RemoteAddr returns a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.inner().RemoteAddr() }

// SetDeadline sets the read and the write deadline: from then on, calls that wait and
// those to come fail with os.ErrDeadlineExceeded until another is set. They are times of
// the node's Clock, if it has one; the zero time means never.
func (c *Conn) SetDeadline(t time.Time) error { return c.inner().SetDeadline(t) }

// SetReadDeadline has Read give up at t; the zero time means never.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.inner().SetReadDeadline(t) }

// SetWriteDeadline has Write give up at t; the zero time means never.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.inner().SetWriteDeadline(t) }

// Listener takes TCP connections. It implements net.Listener.
type Listener struct{ listener *node.Listener }

var _ net.Listener = (*Listener)(nil)

// Accept waits for the next connection.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err // not a *Conn that is nil
	}
	return c, nil
}

// AcceptTCP is Accept with the connection in its own type.
func (l *Listener) AcceptTCP() (*Conn, error) {
	c, err := l.inner().AcceptTCP()
	if err != nil {
		return nil, err
	}
	return &Conn{c}, nil
}

// Close stops listening. Connections that nobody has accepted are reset.
func (l *Listener) Close() error { return l.inner().Close() }

// Addr returns a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return l.inner().Addr() }

// SetDeadline has Accept give up at t; the zero time means never.
func (l *Listener) SetDeadline(t time.Time) error { return l.inner().SetDeadline(t) }
