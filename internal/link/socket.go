package link

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// socket sends and receives datagrams.
type socket interface {
	// recv returns received datagrams, which are valid until the next recv, or ErrWouldBlock.
	recv() ([]datagram, error)
	// push adds a train to those that flush sends; false: flush first. The train's bytes must stay
	// valid until flush.
	push(to *neighbor, t *buffer.Train) bool
	// flush sends the pushed trains in order, updates the neighbors' counters, and forgets the
	// trains. It returns how many packets it processed, and ErrWouldBlock if the kernel did not
	// accept the rest.
	flush() (packets int, err error)
	info() Info
	// counters adds the socket's counters.
	counters(*SocketCounters)
	close() error
}

// datagram is a received datagram: packets of size bytes, of which the last may be shorter.
type datagram struct {
	data []byte
	size int
	from address
}

// address is an IPv4 address and UDP port in one word; 0: none.
type address uint64

func addressOf(a netip.AddrPort) address {
	ip := a.Addr().Unmap()
	if !ip.Is4() || a.Port() == 0 { // port 0 cannot be used
		return 0
	}
	return pack(ip.As4(), a.Port())
}

func pack(ip [4]byte, port uint16) address {
	return address(binary.BigEndian.Uint32(ip[:]))<<16 | address(port)
}

func (a address) ip() (ip [4]byte) {
	binary.BigEndian.PutUint32(ip[:], uint32(a>>16))
	return ip
}

func (a address) port() uint16 { return uint16(a) }

func (a address) addrPort() netip.AddrPort {
	if a == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom4(a.ip()), a.port())
}
