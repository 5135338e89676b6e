package internet

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// The methods of this file are those of the proposed package testing/nettest (go.dev/issue/77362),
// so that a test that uses its in-memory connections can also run over a network.

// past is a deadline that makes waiting calls return.
var past = time.Unix(1, 0)

// injection makes calls of one kind return an error that the test chooses. It makes waiting calls
// return by setting their deadline, and restores the program's deadline afterwards.
type injection struct {
	set func(time.Time) error // sets the deadline of the calls

	mu       sync.Mutex
	err      error // nil: no error
	deadline time.Time
}

// inject sets the error; nil: calls work normally again.
func (i *injection) inject(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.err = err
	if i.set == nil {
		return // Close never waits
	}
	at := i.deadline
	if err != nil {
		at = past
	}
	_ = i.set(at) // fails only if the connection is closed
}

func (i *injection) error() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err
}

// setDeadline sets the program's deadline. While there is an error, it only stores the deadline.
func (i *injection) setDeadline(at time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deadline = at
	if i.err != nil {
		return nil
	}
	return i.set(at)
}

// expired reports whether calls would return at once, because of an error or the deadline.
func (i *injection) expired() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.err != nil || !i.deadline.IsZero() && !time.Now().Before(i.deadline)
}

// injected calls f if there is no injected error, or if ready reports that f does not wait.
// Otherwise it returns the error, without an address.
func injected[T any](i *injection, ready func() bool, f func() (T, error)) (x T, err, own error) {
	i.mu.Lock()
	if i.err == nil {
		i.mu.Unlock()
		if x, err = f(); !errors.Is(err, os.ErrDeadlineExceeded) {
			return x, err, nil
		}
		i.mu.Lock()
		if i.err == nil {
			i.mu.Unlock()
			return x, err, nil
		}
	} else if ready() {
		_ = i.set(i.deadline) // fails only if the connection is closed
		x, err = f()
		_ = i.set(past)
		i.mu.Unlock()
		return x, err, nil
	}
	defer i.mu.Unlock()
	return x, nil, i.err
}

// SetReadError makes calls of Read return err in a net.OpError, including calls that already wait.
// Read returns unread data first, even if it arrives later. Nil removes the error.
func (c *Conn) SetReadError(err error) { c.reads.inject(err) }

// SetWriteError makes calls of Write return err in a net.OpError, including calls that already
// wait. Nil removes the error.
func (c *Conn) SetWriteError(err error) { c.writes.inject(err) }

// SetCloseError makes Close return err in a net.OpError. Close still closes the connection.
func (c *Conn) SetCloseError(err error) { c.closes.inject(err) }

// SetDeadline is like tidepool.Conn.SetDeadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline is like tidepool.Conn.SetReadDeadline.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.reads.setDeadline(t) }

// SetWriteDeadline is like tidepool.Conn.SetWriteDeadline.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.writes.setDeadline(t) }

// CanRead reports whether Read returns without waiting: data, io.EOF or an error.
func (c *Conn) CanRead() bool { return c.reads.expired() || c.readable() }

// readable reports whether Read would return something other than an injected error or a timeout.
func (c *Conn) readable() bool {
	info, err := c.Info()
	if err != nil || info.Unread > 0 {
		return true
	}
	switch info.State {
	case "ESTABLISHED", "FIN_WAIT_1", "FIN_WAIT_2", "SYN_RECEIVED":
		return c.closed.Load()
	}
	return true // the peer has closed its half
}

// IsClosed reports whether Close, or both CloseRead and CloseWrite, were called.
func (c *Conn) IsClosed() bool { return c.closed.Load() || c.halves.Load() == 3 }

// CloseRead is like tidepool.Conn.CloseRead.
func (c *Conn) CloseRead() error { c.halves.Or(1); return c.Conn.CloseRead() }

// CloseWrite is like tidepool.Conn.CloseWrite.
func (c *Conn) CloseWrite() error { c.halves.Or(2); return c.Conn.CloseWrite() }

// Peer returns the connection's other end, or nil if the peer has not accepted the connection or
// has closed it.
func (c *Conn) Peer() *Conn {
	here, there := c.LocalAddr().String(), c.RemoteAddr().String()
	for _, h := range c.host.world.hosts {
		h.openMu.Lock()
		for _, x := range h.open {
			if p, ok := x.(*Conn); ok && p.LocalAddr().String() == there &&
				p.RemoteAddr().String() == here {
				h.openMu.Unlock()
				return p
			}
		}
		h.openMu.Unlock()
	}
	return nil
}

// opError returns an injected error in the form in which package net returns its own.
func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// SetReadError makes calls of Read and ReadFrom return err in a net.OpError, including calls that
// already wait. Datagrams that have arrived are returned later. Nil removes the error.
func (c *PacketConn) SetReadError(err error) { c.reads.inject(err) }

// SetWriteError makes calls of Write and WriteTo return err in a net.OpError, and send nothing. Nil
// removes the error.
func (c *PacketConn) SetWriteError(err error) { c.writes.inject(err) }

// SetCloseError makes Close return err in a net.OpError. Close still closes the socket.
func (c *PacketConn) SetCloseError(err error) { c.closes.inject(err) }

// SetDeadline is like tidepool.PacketConn.SetDeadline.
func (c *PacketConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline is like tidepool.PacketConn.SetReadDeadline.
func (c *PacketConn) SetReadDeadline(t time.Time) error { return c.reads.setDeadline(t) }

// SetWriteDeadline is like tidepool.PacketConn.SetWriteDeadline.
func (c *PacketConn) SetWriteDeadline(t time.Time) error { return c.writes.setDeadline(t) }

// IsClosed reports whether Close was called.
func (c *PacketConn) IsClosed() bool { return c.closed.Load() }

func (c *PacketConn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "udp", Source: c.LocalAddr(), Err: err}
}

// SetAcceptError makes calls of Accept return err in a net.OpError, including calls that already
// wait. Meanwhile, new connections wait. Nil removes the error.
func (l *Listener) SetAcceptError(err error) { l.accepts.inject(err) }

// SetCloseError makes Close return err in a net.OpError. Close still closes the listener.
func (l *Listener) SetCloseError(err error) { l.closes.inject(err) }

// SetDeadline is like tidepool.Listener.SetDeadline.
func (l *Listener) SetDeadline(t time.Time) error { return l.accepts.setDeadline(t) }

func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.Addr(), Err: err}
}

// NewListener listens at a free port of the host server. NewConn of the listener connects to it
// from the host client. A test that uses nettest.NewListener can use this function instead.
func (w *World) NewListener(server, client string) *Listener {
	w.t.Helper()
	h := w.Host(server)
	ln, err := h.Listen("tcp", netip.AddrPortFrom(h.addrs[0], 0).String())
	if err != nil {
		w.t.Fatalf("internet: NewListener: %v", err)
	}
	l := ln.(*Listener)
	l.client = w.Host(client)
	return l
}

// NewConn returns a new connection to a listener from NewListener. Accept returns the other end.
// NewConn waits for the handshake. If it fails, the test ends.
func (l *Listener) NewConn() *Conn {
	l.host.world.t.Helper()
	c, err := l.DialContext(context.Background(), "", "")
	if err != nil {
		l.host.world.t.Fatalf("internet: NewConn: %v", err)
	}
	return c.(*Conn)
}

// DialContext connects to a listener from NewListener and ignores the address. It can be used by
// http.Transport.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	if l.client == nil {
		return nil, l.opError("dial", errors.New("only listeners of NewListener have a client"))
	}
	return l.client.DialContext(ctx, "tcp", l.Addr().String())
}

// NewConnPair returns both ends of a connection from one host to another. It waits for the
// handshake. If it fails, the test ends.
func (w *World) NewConnPair(client, server string) (*Conn, *Conn) {
	w.t.Helper()
	l := w.NewListener(server, client)
	defer l.Close()
	c := l.NewConn()
	s, err := l.Accept()
	if err != nil {
		w.t.Fatalf("internet: NewConnPair: %v", err)
	}
	return c, s.(*Conn)
}

// NewConn returns a UDP socket at an address and port of a host. With this method, a World can
// replace a nettest.PacketNet.
func (w *World) NewConn(at net.Addr) (*PacketConn, error) {
	w.t.Helper()
	for _, h := range w.hosts {
		if hasAddr(h.addrs, at) {
			pc, err := h.ListenPacket("udp", at.String())
			if err != nil {
				return nil, err
			}
			return pc.(*PacketConn), nil
		}
	}
	err := errors.New("no host has this address")
	return nil, &net.OpError{Op: "listen", Net: "udp", Addr: at, Err: err}
}
