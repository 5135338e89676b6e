//go:build linux

// Package datagram implements UDP sockets with segmentation offload: the kernel accepts a run of
// datagrams of equal size in one call (UDP_SEGMENT), and also returns a run in one call (UDP_GRO).
// The ceilings, the relay and gVisor's link use it, so that system calls do not limit any of the
// compared stacks.
package datagram

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requested sizes of the kernel's queues, in bytes. A long queue holds a peer's whole window; a
// short one stays in the cache.
const (
	ShortQueue = 8 << 20
	LongQueue  = 32 << 20
)

// MaxPayload is the most bytes that one call may send, and MaxSegments the most datagrams.
const (
	MaxPayload  = 65507
	MaxSegments = 64
)

// Socket is a bound UDP socket. One goroutine may send and another receive.
type Socket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
	to   unix.RawSockaddrInet4

	message unix.Msghdr
	control []byte
	sent    error
}

// Open binds a UDP socket to an address, or to any free port of 127.0.0.1 if on is invalid. The
// socket sends to one address; queue is the requested size of the kernel's queues in bytes.
func Open(on, to netip.AddrPort, queue int) (*Socket, error) {
	if !on.IsValid() {
		on = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(on))
	if err != nil {
		return nil, err
	}
	s := &Socket{conn: c, control: make([]byte, unix.CmsgSpace(2))}
	if s.raw, err = c.SyscallConn(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s.to.Family = unix.AF_INET
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&s.to.Port))[:], to.Port())
	if to.IsValid() {
		s.to.Addr = to.Addr().As4()
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&s.control[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	if err := s.raw.Control(func(fd uintptr) { Enlarge(int(fd), queue) }); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return s, nil
}

// Enlarge requests kernel queues of the given size in bytes, beyond the system's limit if
// permitted. It ignores errors: the kernel then keeps a smaller size.
func Enlarge(fd, queue int) {
	for _, o := range [][2]int{
		{unix.SO_RCVBUFFORCE, unix.SO_RCVBUF}, {unix.SO_SNDBUFFORCE, unix.SO_SNDBUF},
	} {
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[0], queue) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, o[1], queue)
		}
	}
}

// Coalesce lets the kernel return runs of datagrams in one piece from now on.
func (s *Socket) Coalesce() error {
	var failed error
	err := s.raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_GRO, 1)
	})
	return errors.Join(err, failed)
}

// Addr returns the address that the socket is bound to.
func (s *Socket) Addr() netip.AddrPort { return s.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

// SetReadDeadline sets the time from which reads fail with os.ErrDeadlineExceeded.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.conn.SetReadDeadline(t) }

// Close closes the socket; pending reads fail with net.ErrClosed.
func (s *Socket) Close() error { return s.conn.Close() }

// Send sends the pieces as datagrams of size bytes, the last of which may be shorter. It waits
// while the kernel's queue is full, and returns any other error of the kernel.
func (s *Socket) Send(pieces []unix.Iovec, total, size int) error {
	s.message = unix.Msghdr{
		Name: (*byte)(unsafe.Pointer(&s.to)), Namelen: unix.SizeofSockaddrInet4, Iov: &pieces[0],
	}
	s.message.SetIovlen(len(pieces))
	if total > size {
		binary.NativeEndian.PutUint16(s.control[unix.CmsgLen(0):], uint16(size))
		s.message.Control = &s.control[0]
		s.message.SetControllen(len(s.control))
	}
	if err := s.raw.Write(s.sendOnce); err != nil {
		return err
	}
	return s.sent
}

func (s *Socket) sendOnce(fd uintptr) bool {
	_, _, e := unix.Syscall(unix.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&s.message)),
		unix.MSG_DONTWAIT)
	s.sent = nil
	if e != 0 && e != unix.EAGAIN {
		s.sent = os.NewSyscallError("sendmsg", e)
	}
	return e != unix.EAGAIN
}

// Piece describes b to the kernel.
func Piece(b []byte) unix.Iovec {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}
