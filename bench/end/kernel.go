//go:build linux

package end

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// kernel is the operating system's own TCP.
type kernel struct{ spec *Spec }

func (k *kernel) at(a netip.Addr, port uint16) string {
	return net.JoinHostPort(a.String(), strconv.Itoa(int(port)))
}

// prepare sets the congestion control before the handshake.
func (k *kernel) prepare(_, _ string, raw syscall.RawConn) error {
	if k.spec.Congestion == "" {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION,
			k.spec.Congestion)
	})
	if err == nil {
		err = failed
	}
	return err
}

func (k *kernel) Listen(port uint16) (net.Listener, error) {
	c := net.ListenConfig{Control: k.prepare}
	return c.Listen(context.Background(), "tcp4", k.at(k.spec.Sides[0].Addr, port))
}

func (k *kernel) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	d := net.Dialer{Control: k.prepare}
	return d.DialContext(ctx, "tcp4", k.at(k.spec.Far, port))
}

func (k *kernel) Account(*Usage) {}

func (k *kernel) Describe(c net.Conn, p *Path) {
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // if this fails, the fields remain zero
		i, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return
		}
		p.RTT = time.Duration(i.Rtt) * time.Microsecond
		p.MSS = int(i.Snd_mss)
		p.Retransmits = uint64(i.Total_retrans)
		p.RTOs = uint64(i.Total_rto)
	})
}

func (k *kernel) Close() error { return nil }
