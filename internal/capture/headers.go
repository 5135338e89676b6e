package capture

import "encoding/binary"

// IPv6 extension headers that are skipped (RFC 8200 §4).
const (
	nextHopByHop    = 0
	nextRouting     = 43
	nextFragment    = 44
	nextDestination = 60

	maxExtensions = 8 // maximum number per packet, the same as in the stack
)

// headers has the header fields that locate and describe an IP packet's payload. Its fields may be
// wrong if the packet is malformed.
type headers struct {
	version    uint8 // IP version, 4 or 6; 0: unknown, or the packet is too short
	protocol   uint8 // protocol of the payload, or an extension header that could not be skipped
	extensions uint8 // the skipped headers: bits by extensionNames
	more       bool  // more fragments follow
	id         uint32
	size       int // size of the headers
	total      int // length of the packet according to the header
	fragment   int // fragment offset in bytes; 0: the first or only fragment
}

// extensionNames are the names that tcpdump prints.
var extensionNames = [...]struct {
	kind uint8
	name string
}{{nextHopByHop, "HBH"}, {nextRouting, "RT"}, {nextDestination, "DSTOPT"}, {nextFragment, "frag"}}

func headersOf(b []byte) (h headers) {
	switch {
	case len(b) >= headerBytes && b[0]>>4 == 4:
		word := binary.BigEndian.Uint16(b[6:])
		h = headers{
			version: 4, protocol: b[9], size: int(b[0]&15) * 4,
			total: int(binary.BigEndian.Uint16(b[2:])), id: uint32(binary.BigEndian.Uint16(b[4:])),
			fragment: int(word&0x1fff) * 8, more: word&0x2000 != 0,
		}
	case len(b) >= headerBytes6 && b[0]>>4 == 6:
		h = headers{
			version: 6, protocol: b[6], size: headerBytes6,
			total: headerBytes6 + int(binary.BigEndian.Uint16(b[4:])),
		}
		for n := 0; n < maxExtensions && h.skip(b); n++ {
		}
	}
	return h
}

// skip moves past the extension header at h.size. It returns false if there is no extension header,
// or if b ends within it. In a later fragment, no header follows the fragment header.
func (h *headers) skip(b []byte) bool {
	at, bit := h.size, extension(h.protocol)
	if bit == 0 || h.fragment > 0 || at+8 > len(b) {
		return false
	}
	length := 8
	if h.protocol == nextFragment {
		word := binary.BigEndian.Uint16(b[at+2:])
		h.fragment, h.more = int(word&^7), word&1 != 0
		h.id = binary.BigEndian.Uint32(b[at+4:])
	} else if length += int(b[at+1]) * 8; at+length > len(b) {
		return false
	}
	h.extensions |= bit
	h.protocol, h.size = b[at], at+length
	return true
}

// extension returns the bit of an extension header; 0 for other protocols.
func extension(protocol uint8) uint8 {
	for i := range extensionNames {
		if extensionNames[i].kind == protocol {
			return 1 << i
		}
	}
	return 0
}

// appendHeader appends the version, and for IPv6 the header fields that tcpdump -v prints.
func (d *datagram) appendHeader(dst []byte) []byte {
	if d.version == 4 {
		return append(dst, "IP "...)
	}
	dst = append(dst, "IP6 ("...)
	if d.class != 0 {
		dst = append(appendHex(append(dst, "class "...), uint32(d.class)), ", "...)
	}
	if d.label != 0 {
		dst = append(appendHex(append(dst, "flowlabel "...), d.label), ", "...)
	}
	dst = appendInt(append(dst, "hlim "...), int(d.ttl))
	for i := range extensionNames {
		if d.extensions&(1<<i) != 0 {
			dst = append(append(dst, ", "...), extensionNames[i].name...)
		}
	}
	return append(dst, ") "...)
}
