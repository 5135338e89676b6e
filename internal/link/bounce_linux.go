package link

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// maxBounces bounds what is kept of one turn; one of a peer is as good as many.
const maxBounces = 64

// heedErrors has the kernel keep the errors of what we send, with where it was sent: a
// socket that is not connected is told nothing otherwise (ip(7), IP_RECVERR).
func (s *batchSocket) heedErrors() {
	// Without it silence is all that a dead peer has.
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
}

// bounces reads what has come back, all of it, for the socket is readable until then. It
// returns how many errors were the network's: the others are those of the last call.
func (s *batchSocket) bounces() (network int) {
	var oob [256]byte
	for {
		_, n, _, from, err := unix.Recvmsg(s.fd, nil, oob[:],
			unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			return network
		}
		errno, origin := extendedError(oob[:n])
		to, ok := from.(*unix.SockaddrInet4)
		if origin != unix.SO_EE_ORIGIN_ICMP || !ok {
			continue
		}
		network++
		if errno == unix.EMSGSIZE {
			continue // the kernel has learnt the path's MTU, and cuts what comes next
		}
		s.count.Absent++
		if len(s.bounced) < maxBounces {
			s.bounced = append(s.bounced, bounced{
				to: pack(to.Addr, uint16(to.Port)), refused: errno == unix.ECONNREFUSED, err: errno,
			})
		}
	}
}

// extendedError finds the kernel's struct sock_extended_err in control messages.
func extendedError(oob []byte) (errno unix.Errno, origin uint8) {
	const originAt, size = 4, 16
	for len(oob) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(oob)
		if err != nil {
			return 0, 0
		}
		if h.Level == unix.IPPROTO_IP && h.Type == unix.IP_RECVERR && len(data) >= size {
			return unix.Errno(binary.NativeEndian.Uint32(data)), data[originAt]
		}
		oob = rest
	}
	return 0, 0
}

// takeBounced gives away what has come back.
func (s *batchSocket) takeBounced() []bounced {
	list := s.bounced
	s.bounced = nil
	return list
}
