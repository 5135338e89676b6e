package ip

import "net/netip"

// LinkLocal returns the link-local address with the interface identifier of an IPv6 address, its
// last 64 bits (RFC 4291 §2.5.6). So a node can derive the link-local addresses of neighbors from
// their configured addresses.
func LinkLocal(a netip.Addr) netip.Addr {
	b := a.As16()
	copy(b[:8], []byte{0xfe, 0x80, 0, 0, 0, 0, 0, 0})
	return netip.AddrFrom16(b)
}

// Outline returns the addresses and the type of service of a packet with a complete header.
func Outline(b []byte) (src, dst netip.Addr, tos uint8) {
	if b[0]>>4 == version6 {
		src = netip.AddrFrom16([16]byte(b[sourceAt:]))
		return src, netip.AddrFrom16([16]byte(b[destinationAt:])), b[0]<<4 | b[1]>>4
	}
	return netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:])), b[1]
}
