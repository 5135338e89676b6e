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
	// push adds a train to those that flush sends. It returns false if flush must be called first.
	// The train's bytes must stay valid until flush.
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

// datagram is a received datagram. It contains packets of size bytes; the last may be shorter.
type datagram struct {
	data    []byte
	size    int
	from    address
	checked bool // as in buffer.Train; only from the Exchange
}

// address is an IP address and UDP port. An IPv4 address is in its IPv4-mapped form, as in
// dual-stack sockets. Port 0, which cannot be used, means no address.
type address struct {
	high, low uint64
	port      uint16
}

// mapped is the value of the 32 bits in front of the IPv4 address in an IPv4-mapped address.
const mapped = 0xffff << 32

func addressOf(a netip.AddrPort) address {
	if a.Port() == 0 || !a.Addr().IsValid() {
		return address{}
	}
	return pack(a.Addr().As16(), a.Port())
}

func pack(ip [16]byte, port uint16) address {
	return address{binary.BigEndian.Uint64(ip[:]), binary.BigEndian.Uint64(ip[8:]), port}
}

func pack4(ip [4]byte, port uint16) address {
	return address{0, mapped | uint64(binary.BigEndian.Uint32(ip[:])), port}
}

// ip4 returns the address as an IPv4 address.
func (a address) ip4() (ip [4]byte) {
	binary.BigEndian.PutUint32(ip[:], uint32(a.low))
	return ip
}

func (a address) ip() (ip [16]byte) {
	binary.BigEndian.PutUint64(ip[:], a.high)
	binary.BigEndian.PutUint64(ip[8:], a.low)
	return ip
}

func (a address) addrPort() netip.AddrPort {
	if a.port == 0 {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.ip()).Unmap(), a.port)
}

// networkOf returns the addresses with which a socket bound to local can communicate, as package
// net calls them: "ip4", "ip6", or "ip" for both.
func networkOf(local netip.Addr) string {
	switch {
	case local.Unmap().Is4():
		return "ip4"
	case local.IsUnspecified():
		return "ip"
	}
	return "ip6"
}

// fits reports whether an address belongs to a network.
func fits(network string, a netip.Addr) bool {
	return a.IsValid() && (network == "ip" || networkOf(a) == network)
}
