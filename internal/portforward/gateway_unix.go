//go:build unix

package portforward

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// openEcho opens a socket for ICMP echo requests to an address: a datagram socket, or a raw one if
// raw is true.
func openEcho(dst netip.Addr) (c net.PacketConn, raw bool, err error) {
	family, protocol := unix.AF_INET, unix.IPPROTO_ICMP
	if dst.Is6() {
		family, protocol = unix.AF_INET6, unix.IPPROTO_ICMPV6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, protocol)
	if err == nil {
		unix.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "icmp")
		defer file.Close() // the connection has its own copy of the descriptor
		c, err = net.FilePacketConn(file)
		return c, false, err
	}
	if !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return nil, false, fmt.Errorf("ICMP socket: %w", err)
	}
	if c, err = rawEcho(dst); err != nil {
		return nil, false, ErrNoEcho
	}
	return c, true, nil
}
