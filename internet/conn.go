package internet

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool"
)

// Conn is a TCP connection of a host's program.
type Conn struct {
	*tidepool.Conn
	opened
}

// Read is tidepool.Conn's.
func (c *Conn) Read(p []byte) (int, error) {
	defer c.call("Read")()
	return c.Conn.Read(p)
}

// Write is tidepool.Conn's.
func (c *Conn) Write(p []byte) (int, error) {
	defer c.call("Write")()
	return c.Conn.Write(p)
}

// Close is tidepool.Conn's.
func (c *Conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// PacketConn is a UDP socket of a host's program.
type PacketConn struct {
	*tidepool.PacketConn
	opened
}

// Read is tidepool.PacketConn's.
func (c *PacketConn) Read(p []byte) (int, error) {
	defer c.call("Read")()
	return c.PacketConn.Read(p)
}

// ReadFrom is tidepool.PacketConn's.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) {
	defer c.call("ReadFrom")()
	return c.PacketConn.ReadFrom(p)
}

// Close is tidepool.PacketConn's.
func (c *PacketConn) Close() error {
	c.forget()
	return c.PacketConn.Close()
}

// Listener is a TCP listener of a host's program. Its connections are Conns.
type Listener struct {
	*tidepool.Listener
	opened
}

// Accept is tidepool.Listener's.
func (l *Listener) Accept() (net.Conn, error) {
	defer l.call("Accept")()
	c, err := l.AcceptTCP()
	if errors.Is(err, net.ErrClosed) {
		l.forget()
	}
	if err != nil {
		return nil, err
	}
	return l.host.hold(c), nil
}

// Close is tidepool.Listener's.
func (l *Listener) Close() error {
	l.forget()
	return l.Listener.Close()
}

// opened is what a program has open and may wait for.
type opened struct {
	host      *Host
	what      func() string
	goroutine string    // that opened it: "goroutine 7"
	callers   []uintptr // of that goroutine
	calls     [2]atomic.Pointer[waiting]
}

// waiting is a call that has not returned.
type waiting struct {
	name  string
	since time.Duration // since the network started
}

// call notes that a call has begun. The function that it returns ends it.
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

// hold wraps what a program has opened, and remembers it until it is closed.
func (h *Host) hold(x any) net.Conn {
	switch x := x.(type) {
	case *tidepool.Conn:
		c := &Conn{Conn: x}
		c.what = func() string {
			return fmt.Sprintf("the connection %v -> %v", c.LocalAddr(), c.RemoteAddr())
		}
		h.remember(&c.opened, c)
		return c
	case *tidepool.PacketConn:
		c := &PacketConn{PacketConn: x}
		c.what = func() string { return fmt.Sprintf("the UDP socket %v", c.LocalAddr()) }
		h.remember(&c.opened, c)
		return c
	case net.Conn:
		return x // RCP
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
	if o.host == nil {
		return
	}
	o.host.openMu.Lock()
	defer o.host.openMu.Unlock()
	delete(o.host.open, o)
}

// openedBy lists the calls that opened it, without those of this package.
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

// Reset resets the connections between this host and another, as a firewall does that has forgotten
// them: calls at both ends return syscall.ECONNRESET. It returns how many there were.
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
	for _, c := range list {
		_ = c.Conn.Reset() // it fails only if the host is down
	}
	return len(list)
}
