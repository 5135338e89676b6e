package internet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool"
)

// Conn is a TCP connection of a host's program.
type Conn struct {
	*tidepool.Conn
	opened
	reads, writes, closes injection

	halves atomic.Uint32 // bits of its closed halves: 1 for reading, 2 for writing
}

// Read is like tidepool.Conn.Read.
func (c *Conn) Read(p []byte) (int, error) {
	defer c.call("Read")()
	n, err, own := injected(&c.reads, c.readable, func() (int, error) { return c.Conn.Read(p) })
	if own != nil {
		err = c.opError("read", own)
	}
	return n, err
}

// Write is like tidepool.Conn.Write.
func (c *Conn) Write(p []byte) (int, error) {
	defer c.call("Write")()
	n, err, own := injected(&c.writes, never, func() (int, error) { return c.Conn.Write(p) })
	if own != nil {
		err = c.opError("write", own)
	}
	return n, err
}

func never() bool { return false }

// Close is like tidepool.Conn.Close.
func (c *Conn) Close() error {
	c.forget()
	err := c.Conn.Close()
	if own := c.closes.error(); own != nil {
		return c.opError("close", own)
	}
	return err
}

// PacketConn is a UDP socket of a host's program.
type PacketConn struct {
	*tidepool.PacketConn
	opened
	reads, writes, closes injection
}

// Read is like tidepool.PacketConn.Read.
func (c *PacketConn) Read(p []byte) (int, error) {
	defer c.call("Read")()
	n, err, own := injected(&c.reads, never, func() (int, error) { return c.PacketConn.Read(p) })
	if own != nil {
		err = c.opError("read", own)
	}
	return n, err
}

// ReadFrom is like tidepool.PacketConn.ReadFrom.
func (c *PacketConn) ReadFrom(p []byte) (n int, from net.Addr, err error) {
	at, err := c.read(func() (a netip.AddrPort, err error) {
		n, a, err = c.PacketConn.ReadFromAddrPort(p)
		return a, err
	})
	if err == nil {
		from = net.UDPAddrFromAddrPort(at)
	}
	return n, from, err
}

// ReadFromAddrPort is like tidepool.PacketConn.ReadFromAddrPort.
func (c *PacketConn) ReadFromAddrPort(p []byte) (n int, from netip.AddrPort, err error) {
	from, err = c.read(func() (a netip.AddrPort, err error) {
		n, a, err = c.PacketConn.ReadFromAddrPort(p)
		return a, err
	})
	return n, from, err
}

func (c *PacketConn) read(f func() (netip.AddrPort, error)) (netip.AddrPort, error) {
	defer c.call("ReadFrom")()
	from, err, own := injected(&c.reads, never, f)
	if own != nil {
		err = c.opError("read", own)
	}
	return from, err
}

// Write is like tidepool.PacketConn.Write.
func (c *PacketConn) Write(p []byte) (int, error) {
	return c.write(func() (int, error) { return c.PacketConn.Write(p) })
}

// WriteTo is like tidepool.PacketConn.WriteTo.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) {
	return c.write(func() (int, error) { return c.PacketConn.WriteTo(p, to) })
}

// WriteToAddrPort is like tidepool.PacketConn.WriteToAddrPort.
func (c *PacketConn) WriteToAddrPort(p []byte, to netip.AddrPort) (int, error) {
	return c.write(func() (int, error) { return c.PacketConn.WriteToAddrPort(p, to) })
}

func (c *PacketConn) write(f func() (int, error)) (int, error) {
	defer c.call("Write")()
	n, err, own := injected(&c.writes, never, f)
	if own != nil {
		err = c.opError("write", own)
	}
	return n, err
}

// Close is like tidepool.PacketConn.Close.
func (c *PacketConn) Close() error {
	c.forget()
	err := c.PacketConn.Close()
	if own := c.closes.error(); own != nil {
		return c.opError("close", own)
	}
	return err
}

// Listener is a TCP listener of a host's program. Its connections are Conns.
type Listener struct {
	*tidepool.Listener
	opened
	accepts, closes injection

	client *Host // the client of NewConn
}

// Accept is like tidepool.Listener.Accept.
func (l *Listener) Accept() (net.Conn, error) {
	defer l.call("Accept")()
	c, err, own := injected(&l.accepts, never, l.AcceptTCP)
	if own != nil {
		return nil, l.opError("accept", own)
	}
	if errors.Is(err, net.ErrClosed) {
		l.forget()
	}
	if err != nil {
		return nil, err
	}
	return l.host.hold(c), nil
}

// Close is like tidepool.Listener.Close.
func (l *Listener) Close() error {
	l.forget()
	err := l.Listener.Close()
	if own := l.closes.error(); own != nil {
		return l.opError("close", own)
	}
	return err
}

// opened is a connection, listener or socket that a program has open. The program may wait on it.
type opened struct {
	host      *Host
	what      func() string
	goroutine string    // the goroutine that opened it, such as "goroutine 7"
	callers   []uintptr // call stack of that goroutine
	calls     [2]atomic.Pointer[waiting]
	closed    atomic.Bool
}

// waiting is a call that has not returned.
type waiting struct {
	name  string
	since time.Duration // time since the network started
}

// call records that a call has begun. The function that it returns records the call's end.
func (o *opened) call(name string) (end func()) {
	w := o.host.world
	w.calls.Add(1)
	kind := 0
	if name == "Write" {
		kind = 1
	}
	o.calls[kind].Store(&waiting{name, time.Since(w.began)})
	return func() {
		o.calls[kind].Store(nil)
		w.calls.Add(1)
	}
}

// hold wraps a connection, listener or socket that a program has opened, and records it until it is
// closed.
func (h *Host) hold(x any) net.Conn {
	switch x := x.(type) {
	case *tidepool.Conn:
		c := &Conn{Conn: x}
		c.reads.set, c.writes.set = x.SetReadDeadline, x.SetWriteDeadline
		c.what = func() string {
			return fmt.Sprintf("the connection %v -> %v", c.LocalAddr(), c.RemoteAddr())
		}
		h.remember(&c.opened, c)
		return c
	case *tidepool.PacketConn:
		c := &PacketConn{PacketConn: x}
		c.reads.set, c.writes.set = x.SetReadDeadline, x.SetWriteDeadline
		c.what = func() string { return fmt.Sprintf("the UDP socket %v", c.LocalAddr()) }
		h.remember(&c.opened, c)
		return c
	case net.Conn:
		return x // RCP connections are not wrapped
	}
	return nil
}

func (h *Host) remember(o *opened, x any) {
	var pcs [16]uintptr
	o.host, o.goroutine = h, goroutineOf(head())
	o.callers = append(o.callers, pcs[:runtime.Callers(3, pcs[:])]...)
	h.openMu.Lock()
	defer h.openMu.Unlock()
	h.open[o] = x
}

func (o *opened) forget() {
	o.closed.Store(true)
	o.host.openMu.Lock()
	defer o.host.openMu.Unlock()
	delete(o.host.open, o)
}

// openedBy lists the functions that opened it, without those of this package.
func (o *opened) openedBy() string {
	var b strings.Builder
	frames := runtime.CallersFrames(o.callers)
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, ".(*Host).") && f.Function != "runtime.goexit" &&
			!strings.Contains(f.Function, ".(*Listener).") {
			fmt.Fprintf(&b, "\n    %s\n        %s:%d", f.Function, f.File, f.Line)
		}
		if !more {
			return b.String()
		}
	}
}

// Reset resets the connections between this host and another one, as a firewall that has lost its
// state does. Calls at both ends return syscall.ECONNRESET. Reset returns the number of
// connections.
func (h *Host) Reset(peer string) int {
	h.world.t.Helper()
	addrs := h.world.Host(peer).addrs
	h.openMu.Lock()
	var list []*Conn
	for _, x := range h.open {
		if c, ok := x.(*Conn); ok && hasAddr(addrs, c.RemoteAddr()) {
			list = append(list, c)
		}
	}
	h.openMu.Unlock()
	slices.SortFunc(list, func(a, b *Conn) int { // a map has no fixed order
		return strings.Compare(a.what(), b.what())
	})
	h.world.happens("%d connections between %s and %s are reset", len(list), h.name, peer)
	for _, c := range list {
		_ = c.Conn.Reset() // fails only if the host is down
	}
	return len(list)
}
