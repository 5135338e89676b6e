package examine

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/link"
)

// Kernel returns this machine's kernel as the subject, behind TUN devices. Each run has its own
// device and network. It needs the permission to create TUN devices: run it as root, preferably in
// its own network namespace.
func Kernel() (Subject, error) {
	var runs atomic.Int64
	p := &Pipe{
		Title: kernelName(),
		Open: func(l *Link, output func(packet []byte)) (PacketStack, error) {
			return openKernel(runs.Add(1), l, output)
		},
	}
	s := setup(false)
	r, err := p.Start(&s)
	if err != nil {
		return nil, err
	}
	r.Close()
	return p, nil
}

func kernelName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "kernel"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
}

// kernel is a TUN device of this machine.
type kernel struct {
	device *link.TUN
	fd     int
	wake   [2]int // a pipe that stops the reader
	local  netip.Addr
	reader sync.WaitGroup
}

// openKernel opens device number n.
func openKernel(n int64, l *Link, output func(packet []byte)) (*kernel, error) {
	const networks = 200
	base := [4]byte{10, byte(20 + n/networks%networks), byte(n % networks), 1}
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
	k := &kernel{device: device, fd: device.FD(), local: l.Addr.Addr()}
	if err := unix.Pipe2(k.wake[:], unix.O_CLOEXEC); err != nil {
		_ = device.Close()
		return nil, err
	}
	k.reader.Go(func() { k.read(output) })
	return k, nil
}

// read reads the device until the wake pipe is closed.
func (k *kernel) read(output func(packet []byte)) {
	b := make([]byte, 1<<16)
	poll := []unix.PollFd{
		{Fd: int32(k.fd), Events: unix.POLLIN},
		{Fd: int32(k.wake[0]), Events: unix.POLLIN},
	}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return
		}
		if poll[1].Revents != 0 {
			return
		}
		n, err := unix.Read(k.fd, b)
		if err == unix.EAGAIN || err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return
		}
		output(b[:n])
	}
}

// Input implements PacketStack. It ignores the device's error for data that is not an IP packet,
// because a kernel would drop such data.
func (k *kernel) Input(packet []byte) error {
	if _, err := unix.Write(k.fd, packet); err != nil && err != unix.EINVAL {
		return err
	}
	return nil
}

// Listen implements PacketStack.
func (k *kernel) Listen(port uint16) (net.Listener, error) {
	return net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(k.local, port)))
}

// Dial implements PacketStack.
func (k *kernel) Dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(k.local, 0))}
	return d.DialContext(ctx, "tcp4", to.String())
}

// Close implements PacketStack.
func (k *kernel) Close() {
	_ = unix.Close(k.wake[1])
	k.reader.Wait()
	_ = unix.Close(k.wake[0])
	_ = k.device.Close()
}
