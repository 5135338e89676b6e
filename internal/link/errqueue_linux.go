package link

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// maxICMPErrors limits the errors that are kept between two calls. One error of a peer is enough.
const maxICMPErrors = 64

// enableErrorQueue enables the kernel's error queue (ip(7), IP_RECVERR and IPV6_RECVERR). Without
// it, an unconnected socket gets no ICMP errors.
func (s *batchSocket) enableErrorQueue() {
	// If the kernel refuses the option, the node detects a dead peer only by its silence.
	_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1)
	if s.ip6 {
		_ = unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_RECVERR, 1)
	}
}

// readErrorQueue empties the error queue, because the socket is readable while the queue has
// entries. It returns the number of ICMP errors. The other entries are local errors.
func (s *batchSocket) readErrorQueue() (network int) {
	var oob [256]byte
	for {
		_, n, _, from, err := unix.Recvmsg(s.fd, nil, oob[:],
			unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			return network
		}
		errno, origin := extendedError(oob[:n])
		to := addressFrom(from)
		if origin != unix.SO_EE_ORIGIN_ICMP && origin != unix.SO_EE_ORIGIN_ICMP6 || to.port == 0 {
			continue
		}
		network++
		if errno == unix.EMSGSIZE {
			continue // the kernel has updated the path MTU and will fragment later packets
		}
		s.count.Absent++
		if len(s.icmpErrors) < maxICMPErrors {
			s.icmpErrors = append(s.icmpErrors, icmpError{
				to: to, refused: errno == unix.ECONNREFUSED, err: errno,
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
		if (h.Level == unix.IPPROTO_IP && h.Type == unix.IP_RECVERR ||
			h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_RECVERR) && len(data) >= size {
			return unix.Errno(binary.NativeEndian.Uint32(data)), data[originAt]
		}
		oob = rest
	}
	return 0, 0
}

// takeICMPErrors returns and clears the collected errors.
func (s *batchSocket) takeICMPErrors() []icmpError {
	list := s.icmpErrors
	s.icmpErrors = nil
	return list
}
