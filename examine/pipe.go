package examine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// PacketStack is a started stack of a Pipe, with sockets like those of package net.
type PacketStack interface {
	Listen(port uint16) (net.Listener, error)
	// Dial opens a connection. The connection has a method CloseWrite if the stack supports
	// half-close.
	Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// Input delivers an IP packet. The stack must not keep the slice.
	Input(packet []byte) error
	Close()
}

// Pipe is a subject that runs in this process: a host that sends and receives IP packets by
// function calls.
type Pipe struct {
	// Title is the subject's name in reports.
	Title string
	// Open starts a stack on a link. It may change the link's addresses. The stack calls output
	// with each IP packet that it sends.
	Open func(l *Link, output func(packet []byte)) (PacketStack, error)
}

// Name implements Subject.
func (p *Pipe) Name() string { return p.Title }

// Has implements Subject.
func (*Pipe) Has(f Feature) bool {
	return f == FeatureTCP || f == FeatureUser || f == FeatureShutdown || f == FeatureFiles
}

// RIPPeriod implements Subject.
func (*Pipe) RIPPeriod() time.Duration { return coursePeriod }

// RIPTimeout implements Subject.
func (*Pipe) RIPTimeout() time.Duration { return courseTimeout }

// Start implements Subject.
func (p *Pipe) Start(s *Setup) (Run, error) {
	r := &pipeRun{inbox: newInbox()}
	r.changed = sync.NewCond(&r.mu)
	stack, err := p.Open(&s.Links[0], func(packet []byte) { r.put(0, packet) })
	if err != nil {
		r.close()
		return nil, err
	}
	r.stack = stack
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.dialer = func(to netip.AddrPort) (net.Conn, error) { return stack.Dial(ctx, to) }
	return r, nil
}

// pipeRun is a stack with its user. mu guards the fields below it.
type pipeRun struct {
	inbox
	stack   PacketStack
	readers sync.WaitGroup
	dialer  func(to netip.AddrPort) (net.Conn, error)
	cancel  context.CancelFunc // cancels attempts to open connections

	mu      sync.Mutex
	changed *sync.Cond
	conn    net.Conn
	sockets []io.Closer
	shown   strings.Builder
	file    []byte
	done    bool
	closed  bool
}

// Send implements Run.
func (r *pipeRun) Send(_ int, packet []byte) error { return r.stack.Input(packet) }

// Do implements Run.
func (r *pipeRun) Do(c Command) error {
	switch c.Kind {
	case CommandListen, CommandReceiveFile:
		l, err := r.stack.Listen(c.Port)
		if err != nil {
			return err
		}
		r.keep(l)
		r.readers.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				r.adopt(conn)
				if c.Kind == CommandReceiveFile {
					r.store(conn)
				}
			}
		})
	case CommandConnect, CommandSendFile:
		r.readers.Go(func() { r.dial(c) })
	case CommandUp, CommandDown, CommandTest:
		return ErrUnsupported
	default:
		return r.onConn(c)
	}
	return nil
}

// dial opens a connection and, if the command says so, sends a file on it.
func (r *pipeRun) dial(c Command) {
	conn, err := r.dialer(netip.AddrPortFrom(c.Addr, c.Port))
	if err != nil {
		return
	}
	r.adopt(conn)
	if c.Kind == CommandSendFile {
		if _, err := conn.Write(c.Data); err == nil {
			_ = closeWrite(conn)
		}
	}
}

type writeCloser interface{ CloseWrite() error }

// closeWrite closes the sending side of a connection.
func closeWrite(conn net.Conn) error {
	half, ok := conn.(writeCloser)
	if !ok {
		return ErrUnsupported
	}
	return half.CloseWrite()
}

// store reads from a connection to the end and stores the file.
func (r *pipeRun) store(conn net.Conn) {
	b := make([]byte, 1<<16)
	for {
		n, err := conn.Read(b)
		r.mu.Lock()
		r.file = append(r.file, b[:n]...)
		r.done = errors.Is(err, io.EOF)
		r.mu.Unlock()
		if err != nil {
			_ = conn.Close()
			return
		}
	}
}

// onConn waits for the connection and carries out a command on it.
func (r *pipeRun) onConn(c Command) error {
	conn := r.connection(2 * time.Second)
	if conn == nil {
		return fmt.Errorf("there is no connection")
	}
	switch c.Kind {
	case CommandWrite:
		r.readers.Go(func() { _, _ = conn.Write(c.Data) })
	case CommandRead:
		r.readers.Go(func() {
			b := make([]byte, c.N)
			if n, _ := conn.Read(b); n > 0 {
				r.mu.Lock()
				fmt.Fprintf(&r.shown, "Read %d bytes: %s\n", n, b[:n])
				r.mu.Unlock()
			}
		})
	case CommandShutdown:
		if _, ok := conn.(writeCloser); !ok {
			return ErrUnsupported
		}
		r.readers.Go(func() { _ = closeWrite(conn) })
	case CommandClose:
		r.readers.Go(func() { _ = conn.Close() })
	default: // other commands need no connection
	}
	return nil
}

// connection returns the connection, or nil if there is none after d.
func (r *pipeRun) connection(d time.Duration) net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	over := false
	timer := time.AfterFunc(d, func() {
		r.mu.Lock()
		over = true
		r.mu.Unlock()
		r.changed.Broadcast()
	})
	defer timer.Stop()
	for r.conn == nil && !over {
		r.changed.Wait()
	}
	return r.conn
}

// keep records a socket, so that Close closes it.
func (r *pipeRun) keep(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
	}
	r.sockets = append(r.sockets, c)
}

// adopt makes a connection the current one.
func (r *pipeRun) adopt(conn net.Conn) {
	r.keep(conn)
	r.mu.Lock()
	r.conn = conn
	r.mu.Unlock()
	r.changed.Broadcast()
}

// Printed implements Run.
func (r *pipeRun) Printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown.String()
}

// File implements Run.
func (r *pipeRun) File() ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.file), r.done
}

// Ended implements Run.
func (*pipeRun) Ended() *Ending { return nil }

// closeTime is how long a stack may take to close.
const closeTime = 5 * time.Second

// Close implements Run. If the stack hangs, its goroutines remain.
func (r *pipeRun) Close() {
	r.cancel()
	r.mu.Lock()
	r.closed = true
	sockets := r.sockets
	r.mu.Unlock()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for _, s := range sockets {
			if c, ok := s.(net.Conn); ok {
				_ = c.SetDeadline(time.Unix(1, 0)) // makes reads and writes return
			}
			if c, ok := s.(interface{ SetLinger(sec int) error }); ok {
				_ = c.SetLinger(0)
			}
			_ = s.Close()
		}
		r.stack.Close()
		r.readers.Wait()
	}()
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
	r.close()
}
