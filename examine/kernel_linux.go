package examine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/link"
)

// kernel is this machine's kernel as the subject, behind TUN devices. Each run has its own device
// and network. The examiner's own sockets are the subject's user.
type kernel struct{ runs atomic.Int64 }

// Kernel returns this machine's kernel as the subject. It needs the right to create TUN devices:
// root, best in a network namespace of its own.
func Kernel() (Subject, error) {
	k := &kernel{}
	s := setup(false)
	r, err := k.Start(&s)
	if err != nil {
		return nil, err
	}
	r.Close()
	return k, nil
}

// Name implements Subject.
func (*kernel) Name() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "kernel"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// Has implements Subject. The kernel is a host here.
func (*kernel) Has(f Feature) bool {
	return f == FeatureTCP || f == FeatureUser || f == FeatureShutdown || f == FeatureFiles
}

// RIPPeriod implements Subject.
func (*kernel) RIPPeriod() time.Duration { return coursePeriod }

// RIPTimeout implements Subject.
func (*kernel) RIPTimeout() time.Duration { return courseTimeout }

// kernelRun is a TUN device with the sockets of a user. Mu guards the fields below it.
type kernelRun struct {
	inbox
	device  *link.TUN
	fd      int
	wake    [2]int // a pipe that ends the reader
	local   netip.Addr
	readers sync.WaitGroup
	dialer  func(d *net.Dialer, to string) (net.Conn, error)
	cancel  context.CancelFunc // ends what opens connections

	mu      sync.Mutex
	changed *sync.Cond
	conn    *net.TCPConn
	sockets []io.Closer
	shown   strings.Builder
	file    []byte
	done    bool
	closed  bool
}

// Start implements Subject.
func (k *kernel) Start(s *Setup) (Run, error) {
	const networks = 200
	n := k.runs.Add(1)
	base := [4]byte{10, byte(20 + n/networks%networks), byte(n % networks), 1}
	l := &s.Links[0]
	l.Addr = netip.PrefixFrom(netip.AddrFrom4(base), 24)
	base[3]++
	l.Peer = netip.AddrFrom4(base)
	device, err := link.OpenTUN(link.TUNConfig{
		Device: "ex" + strconv.FormatInt(n, 10), Kernel: []netip.Prefix{l.Addr},
		Interface: link.Interface{Name: "if0", Local: l.Peer}, Offload: link.OffloadPlain,
	})
	if err != nil {
		return nil, err
	}
	r := &kernelRun{
		inbox: newInbox(), device: device, fd: device.FD(), local: l.Addr.Addr(),
	}
	r.changed = sync.NewCond(&r.mu)
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(context.Background())
	r.dialer = func(d *net.Dialer, to string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp4", to)
	}
	if err := unix.Pipe2(r.wake[:], unix.O_CLOEXEC); err != nil {
		_ = device.Close()
		return nil, err
	}
	r.readers.Go(r.read)
	return r, nil
}

// read reads the device until the wake pipe is closed.
func (r *kernelRun) read() {
	b := make([]byte, 1<<16)
	poll := []unix.PollFd{
		{Fd: int32(r.fd), Events: unix.POLLIN},
		{Fd: int32(r.wake[0]), Events: unix.POLLIN},
	}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return
		}
		if poll[1].Revents != 0 {
			return
		}
		n, err := unix.Read(r.fd, b)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		r.put(0, b[:n])
	}
}

// Send implements Run. The device refuses what is no IP packet, as a kernel drops it.
func (r *kernelRun) Send(_ int, packet []byte) error {
	if _, err := unix.Write(r.fd, packet); err != nil && err != unix.EINVAL {
		return err
	}
	return nil
}

// Do implements Run.
func (r *kernelRun) Do(c Command) error {
	switch c.Kind {
	case CommandListen, CommandReceiveFile:
		l, err := net.ListenTCP("tcp4",
			net.TCPAddrFromAddrPort(netip.AddrPortFrom(r.local, c.Port)))
		if err != nil {
			return err
		}
		r.keep(l)
		r.readers.Go(func() {
			for {
				conn, err := l.AcceptTCP()
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

// dial opens a connection, and sends a file on it.
func (r *kernelRun) dial(c Command) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(r.local, 0))}
	conn, err := r.dialer(&d, netip.AddrPortFrom(c.Addr, c.Port).String())
	if err != nil {
		return
	}
	tcp := conn.(*net.TCPConn)
	r.adopt(tcp)
	if c.Kind == CommandSendFile {
		if _, err := tcp.Write(c.Data); err == nil {
			_ = tcp.CloseWrite()
		}
	}
}

// store reads a file to its end.
func (r *kernelRun) store(conn *net.TCPConn) {
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

// onConn does something to the connection, for which it waits a while.
func (r *kernelRun) onConn(c Command) error {
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
		return conn.CloseWrite()
	case CommandClose:
		return conn.Close()
	default: // not about the connection
	}
	return nil
}

// connection returns the connection, or nil after d.
func (r *kernelRun) connection(d time.Duration) *net.TCPConn {
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

// keep closes a socket at the end of the run.
func (r *kernelRun) keep(c io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
	}
	r.sockets = append(r.sockets, c)
}

// adopt makes a connection the current one.
func (r *kernelRun) adopt(conn *net.TCPConn) {
	r.keep(conn)
	r.mu.Lock()
	r.conn = conn
	r.mu.Unlock()
	r.changed.Broadcast()
}

// Printed implements Run.
func (r *kernelRun) Printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown.String()
}

// File implements Run.
func (r *kernelRun) File() ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clip(r.file), r.done
}

// Ended implements Run.
func (*kernelRun) Ended() *Ending { return nil }

// Close implements Run.
func (r *kernelRun) Close() {
	r.cancel()
	r.mu.Lock()
	r.closed = true
	sockets := r.sockets
	r.mu.Unlock()
	for _, s := range sockets {
		if c, ok := s.(*net.TCPConn); ok {
			_ = c.SetLinger(0)
		}
		_ = s.Close()
	}
	_ = unix.Close(r.wake[1])
	r.readers.Wait()
	_ = unix.Close(r.wake[0])
	_ = r.device.Close()
}
