package link

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// rxTrains is the number of datagrams per call if each may be a train. Memory is used from the
	// front, so that a small number stays in the CPU's cache.
	rxTrains = 16
	// rxSingles is the number of datagrams per call if each is one packet.
	rxSingles = 64
)

// receiver is the memory that recvmmsg fills.
type receiver struct {
	hdrs  []mmsghdr
	iovs  []unix.Iovec
	names []sockaddr
	ctrl  [][4]uint64 // memory for one control message per datagram, aligned
	list  []datagram
	used  int // number of hdrs that the last call overwrote
	gro   bool
}

// recv implements socket.
func (s *batchSocket) recv() ([]datagram, error) {
	r := &s.rx
	for i := range r.hdrs[:r.used] {
		h := &r.hdrs[i].hdr
		h.Namelen = uint32(unsafe.Sizeof(r.names[i]))
		h.SetControllen(int(unsafe.Sizeof(r.ctrl[i])))
	}
	r.used = 0
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(s.fd),
			uintptr(unsafe.Pointer(&r.hdrs[0])), uintptr(len(r.hdrs)), unix.MSG_DONTWAIT, 0, 0)
		switch errno {
		case 0:
			s.count.Reads++
			return r.received(int(n)), nil
		case unix.EINTR:
		case unix.EAGAIN:
			return nil, ErrWouldBlock
		case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH:
			s.readErrorQueue() // reads and clears the error of an earlier send
		case unix.EBADF, unix.ENOTSOCK:
			return nil, errno
		default:
			if s.readErrorQueue() > 0 {
				continue
			}
			s.count.ReadErrors++
			return nil, ErrWouldBlock
		}
	}
}

// received describes the first n messages.
func (r *receiver) received(n int) []datagram {
	r.used = n
	r.list = r.list[:n]
	for i := range r.list {
		h := &r.hdrs[i]
		data := unsafe.Slice(r.iovs[i].Base, maxDatagram)[:h.len:h.len]
		size := len(data)
		if r.gro {
			size = joined(&h.hdr, size)
		}
		r.list[i] = datagram{data: data, size: size, from: r.names[i].address()}
	}
	return r.list
}

// joined returns the size of the datagrams that the kernel has joined, from a control message.
// Without that message, it returns n, the length of a single datagram.
func joined(h *unix.Msghdr, n int) int {
	c := (*unix.Cmsghdr)(unsafe.Pointer(h.Control))
	if int(h.Controllen) < unix.CmsgLen(4) ||
		c.Level != unix.IPPROTO_UDP || c.Type != unix.UDP_GRO {
		return n
	}
	size := int(*(*int32)(unsafe.Add(unsafe.Pointer(c), unix.CmsgLen(0))))
	if size <= 0 || size > n {
		return n
	}
	return size
}
