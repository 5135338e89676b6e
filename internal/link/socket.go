package link

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// socket is where datagrams leave and enter the process.
type socket interface {
	// recv fetches what has arrived. The datagrams are lent until the next
	// recv. It says ErrWouldBlock when nothing has.
	recv() ([]datagram, error)
	// push puts a train behind those that wait for flush; false: flush first.
	// The train's bytes are borrowed until flush.
	push(to *neighbor, t *buffer.Train) bool
	// flush sends what was pushed, in order, accounting for it at the
	// neighbours, and forgets it. It returns how many packets it was done with
	// and ErrWouldBlock if those behind were not taken.
	flush() (packets int, err error)
	info() Info
	// counters adds what the socket has counted.
	counters(*SocketCounters)
	close() error
}

// datagram is what came in one piece from one sender: packets of size bytes, the
// last may be shorter.
type datagram struct {
	data []byte
	size int
	from address
}

// address is an IPv4 address and UDP port in one word; 0 is none.
type address uint64

func addressOf(a netip.AddrPort) address {
	ip := a.Addr().Unmap()
	if !ip.Is4() || a.Port() == 0 { // nobody can be at port 0
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
