package link

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// batchSocket passes many datagrams per call. Each is a train if the kernel segments and joins them
// (UDP_SEGMENT, UDP_GRO). udp_rx_linux.go and udp_tx_linux.go are its two directions.
type batchSocket struct {
	fd    int
	ip6   bool // the socket is an IPv6 socket, which may serve both families
	gso   bool // cleared when the kernel refuses a train
	rx    receiver
	tx    transmitter
	stats Info
	count SocketCounters

	icmpErrors []icmpError // ICMP errors that have not been returned yet
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// openSocket opens the configured kind of socket, and returns it with the descriptor to wait on.
func openSocket(cfg Config, bind netip.AddrPort) (socket, int, error) {
	if cfg.Offload == OffloadPlain {
		return openPlainSocket(cfg, bind)
	}
	s := &batchSocket{ip6: bind.Addr().Is6()}
	fd, err := unix.Socket(s.family(), unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, -1, err
	}
	if err := canBatch(fd); err != nil {
		unix.Close(fd)
		if cfg.Offload == OffloadAuto {
			return openPlainSocket(cfg, bind)
		}
		return nil, -1, err
	}
	s.fd = fd
	if err := s.setUp(cfg, bind); err != nil {
		unix.Close(fd)
		return nil, -1, err
	}
	return s, fd, nil
}

func openPlainSocket(cfg Config, bind netip.AddrPort) (socket, int, error) {
	s, err := openPlain(cfg, bind)
	if err != nil {
		return nil, -1, err
	}
	return s, -1, nil
}

// canBatch tests recvmmsg and sendmmsg, without datagrams. A sandbox may forbid them.
func canBatch(fd int) error {
	for _, call := range []struct {
		name   string
		number uintptr
	}{{"sendmmsg", unix.SYS_SENDMMSG}, {"recvmmsg", unix.SYS_RECVMMSG}} {
		var none mmsghdr
		_, _, errno := unix.Syscall6(call.number, uintptr(fd), uintptr(unsafe.Pointer(&none)), 0,
			unix.MSG_DONTWAIT, 0, 0)
		if errno != 0 && errno != unix.EAGAIN {
			return fmt.Errorf("this kernel has no %s: use offload plain: %w",
				call.name, errno)
		}
	}
	return nil
}

func (s *batchSocket) setUp(cfg Config, bind netip.AddrPort) error {
	largest(s.fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, cfg.RecvBuffer)
	largest(s.fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, cfg.SendBuffer)
	if err := s.bind(bind); err != nil {
		return err
	}
	s.enableErrorQueue()
	sa, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	s.stats.Local = addressFrom(sa).addrPort()
	bufferSizes(s.fd, &s.stats)
	if cfg.Offload != OffloadMMsg {
		if err := s.probe(cfg.Offload); err != nil {
			return err
		}
	}
	s.rx.init(s.stats.GRO)
	s.tx.init()
	return nil
}

func (s *batchSocket) family() int {
	if s.ip6 {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// bind binds the socket. As in package net, the unspecified address of IPv6 stands for both
// families.
func (s *batchSocket) bind(to netip.AddrPort) error {
	if !s.ip6 {
		return unix.Bind(s.fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())})
	}
	v6only := 1
	if to.Addr().IsUnspecified() {
		v6only = 0
	}
	if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, v6only); err != nil {
		return err
	}
	return unix.Bind(s.fd, &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())})
}

// addressFrom converts a socket address of package unix.
func addressFrom(sa unix.Sockaddr) address {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return pack4(sa.Addr, uint16(sa.Port))
	case *unix.SockaddrInet6:
		return pack(sa.Addr, uint16(sa.Port))
	}
	return address{}
}

// probe tests the kernel's features. UDP_SEGMENT needs Linux 4.18, UDP_GRO 5.0. Only the first
// train shows whether the real device supports segmentation.
func (s *batchSocket) probe(want Offload) error {
	_, errGSO := unix.GetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_SEGMENT)
	errGRO := unix.SetsockoptInt(s.fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1)
	s.gso, s.stats.GRO = errGSO == nil, errGRO == nil
	if want == OffloadGSO && errGSO != nil {
		return fmt.Errorf("no UDP_SEGMENT on this kernel: %w", errGSO)
	}
	return nil
}

// largest sets the size of a queue. It exceeds the system's limit if permitted.
func largest(fd, force, plain, size int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, size) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, size) // Info shows the actual size
	}
}

func bufferSizes(fd int, info *Info) {
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err == nil {
		info.RecvBuffer = n
	}
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err == nil {
		info.SendBuffer = n
	}
}

func (s *batchSocket) info() Info {
	s.stats.Offload = OffloadMMsg
	if s.gso {
		s.stats.Offload = OffloadGSO
	}
	return s.stats
}

func (s *batchSocket) counters(c *SocketCounters) {
	c.Reads, c.Writes, c.Absent = s.count.Reads, s.count.Writes, s.count.Absent
	c.ReadErrors = s.count.ReadErrors
	c.Overflow = drops(s.fd)
}

func (s *batchSocket) close() error { return unix.Close(s.fd) }

// readBufferSizes reads the actual sizes of the queues.
func readBufferSizes(conn *net.UDPConn, info *Info) {
	control(conn, func(fd int) { bufferSizes(fd, info) })
}

// overflow returns how many datagrams the kernel's receive queue has dropped.
func overflow(conn *net.UDPConn) (n uint64) {
	control(conn, func(fd int) { n = drops(fd) })
	return n
}

func control(conn *net.UDPConn, do func(fd int)) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) }) // a closed socket has no drops
	}
}

// These are indexes of SO_MEMINFO (linux/sock_diag.h).
const (
	memInfoDrops = 8
	memInfoLen   = 9
)

// drops returns the socket's drop counter. SO_RXQ_OVFL would return the same number, but only with
// a later datagram and at a cost for each.
func drops(fd int) uint64 {
	var info [memInfoLen]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET,
		unix.SO_MEMINFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0
	}
	return uint64(info[memInfoDrops])
}

// sockaddr is memory for a struct sockaddr_in or sockaddr_in6. Both have the port at the same
// place, in network byte order.
type sockaddr unix.RawSockaddrInet6

// put writes an address in the form of the socket's family, and returns the length of the struct.
func (sa *sockaddr) put(a address, ip6 bool) (size uint32) {
	if ip6 {
		*sa, size = sockaddr{Family: unix.AF_INET6, Addr: a.ip()}, unix.SizeofSockaddrInet6
	} else {
		in := (*unix.RawSockaddrInet4)(unsafe.Pointer(sa))
		*in = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: a.ip4()}
		size = unix.SizeofSockaddrInet4
	}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:], a.port)
	return size
}

func (sa *sockaddr) address() address {
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&sa.Port))[:])
	if sa.Family == unix.AF_INET {
		return pack4((*unix.RawSockaddrInet4)(unsafe.Pointer(sa)).Addr, port)
	}
	return pack(sa.Addr, port)
}

func (r *receiver) init(gro bool) {
	n := rxSingles
	if gro {
		n = rxTrains
	}
	r.gro = gro
	r.hdrs = make([]mmsghdr, n)
	r.iovs = make([]unix.Iovec, n)
	r.names = make([]sockaddr, n)
	r.ctrl = make([][4]uint64, n)
	r.list = make([]datagram, 0, n)
	mem := make([]byte, n*maxDatagram)
	for i := range r.hdrs {
		r.iovs[i].Base = &mem[i*maxDatagram]
		r.iovs[i].SetLen(maxDatagram)
		h := &r.hdrs[i].hdr
		h.Iov = &r.iovs[i]
		h.SetIovlen(1)
		h.Name = (*byte)(unsafe.Pointer(&r.names[i]))
		h.Control = (*byte)(unsafe.Pointer(&r.ctrl[i]))
	}
	r.used = n
}
