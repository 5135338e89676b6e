package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// Facts are the properties of a packet that a filter can test.
type Facts struct {
	Iface   string // name of the interface
	Out     bool   // the node sends the packet
	Dropped bool   // the packet was dropped
	Length  int    // length on the link in bytes

	headers
	src, dst      netip.Addr
	ports         bool // the next two fields are valid
	sport         uint16
	dport         uint16
	isTCP         bool // the packet is TCP, with these flags
	flags         uint8
	payloadLength int // length of a TCP segment's payload
}

// HeaderBytes is the largest number of bytes of a packet that Parse and a Follower read: the
// longest headers of IPv4 and TCP. IPv6 fits with 20 bytes of extension headers.
const HeaderBytes = 120

// Parse fills in the facts from the packet's first HeaderBytes bytes, or all of a shorter packet.
func (f *Facts) Parse(packet []byte) {
	f.headers, f.ports, f.isTCP = headersOf(packet), false, false
	switch f.version {
	case 4:
		f.src, f.dst = netip.AddrFrom4([4]byte(packet[12:])), netip.AddrFrom4([4]byte(packet[16:]))
	case 6:
		f.src = netip.AddrFrom16([16]byte(packet[8:]))
		f.dst = netip.AddrFrom16([16]byte(packet[24:]))
	}
	if f.fragment > 0 || f.size < headerBytes || len(packet) < f.size+4 ||
		f.protocol != protocolTCP && f.protocol != protocolUDP {
		return
	}
	f.ports = true
	f.sport, f.dport = binary.BigEndian.Uint16(packet[f.size:]),
		binary.BigEndian.Uint16(packet[f.size+2:])
	if f.protocol == protocolTCP && len(packet) >= f.size+20 {
		f.isTCP, f.flags = true, packet[f.size+13]
		f.payloadLength = max(0, f.total-f.size-int(packet[f.size+12]>>4)*4)
	}
}

// Segment returns the TCP segment of the packet that Parse has read; nil if the packet is not TCP,
// or is a fragment.
func (f *Facts) Segment(packet []byte) []byte {
	if !f.isTCP || f.more || f.fragment > 0 || f.total < f.size {
		return nil
	}
	return packet[f.size:min(f.total, len(packet))]
}

func (f *Facts) ecn(packet []byte) uint8 {
	if f.version == 6 {
		return packet[1] >> 4 & 3
	}
	return packet[1] & 3
}

// Flow identifies a TCP connection, from the viewpoint of one of its ends.
type Flow struct {
	Local, Remote netip.AddrPort
}

// Flow returns the flow of a TCP segment as the segment's sender or its receiver sees it. It
// returns false for other packets.
func (f *Facts) Flow(ofSender bool) (Flow, bool) {
	src := netip.AddrPortFrom(f.zoned(f.src), f.sport)
	dst := netip.AddrPortFrom(f.zoned(f.dst), f.dport)
	if ofSender {
		return Flow{Local: src, Remote: dst}, f.isTCP
	}
	return Flow{Local: dst, Remote: src}, f.isTCP
}

// zoned adds the interface as the zone of a link-local address, as in the stack's connections.
func (f *Facts) zoned(a netip.Addr) netip.Addr {
	if f.version == 6 && a.IsLinkLocalUnicast() {
		return a.WithZone(f.Iface)
	}
	return a
}

// Filter is a parsed filter. A nil Filter matches every packet.
type Filter struct{ root *term }

// Match reports whether a packet matches. It does not allocate.
func (f *Filter) Match(p *Facts) bool { return f == nil || f.root.match(p) }

// termKind is what a term tests.
type termKind uint8

const (
	termNot termKind = iota
	termAnd
	termOr
	termNet
	termPorts
	termProtocol
	termIP
	termFlags
	termLess
	termGreater
	termDrop
	termOut
	termIface
)

// dirQualifier says which of a packet's two addresses a term tests (pcap-filter(7): dir).
type dirQualifier uint8

const (
	srcOrDst dirQualifier = iota
	srcAndDst
	srcOnly
	dstOnly
)

// term is a node of a filter's syntax tree.
type term struct {
	kind     termKind
	a, b     *term // operands of not, and, or
	dir      dirQualifier
	version  uint8 // IP version that must match; 0: any
	net      netip.Prefix
	low      uint16 // range of ports, from low to high
	high     uint16
	protocol int   // protocol that a port must have; negative: any
	flags    uint8 // mask of the flags to test
	// equal is the value that the masked flags must have if exact is set. Otherwise one flag is
	// enough.
	equal   uint8
	exact   bool
	negated bool // the test of the flags is inverted
	number  int
	name    string
}

func (t *term) match(p *Facts) bool {
	if t.version != 0 && t.version != p.version {
		return false
	}
	switch t.kind {
	case termNot:
		return !t.a.match(p)
	case termAnd:
		return t.a.match(p) && t.b.match(p)
	case termOr:
		return t.a.match(p) || t.b.match(p)
	case termNet:
		return t.dir.of(t.net.Contains(p.src), t.net.Contains(p.dst))
	case termPorts:
		return p.ports && (t.protocol < 0 || int(p.protocol) == t.protocol) &&
			t.dir.of(t.low <= p.sport && p.sport <= t.high, t.low <= p.dport && p.dport <= t.high)
	case termProtocol:
		return p.version != 0 && int(p.protocol) == t.protocol
	case termIP:
		return true
	case termFlags:
		return p.isTCP && t.hasFlags(p.flags) != t.negated
	case termLess:
		return p.Length <= t.number
	case termGreater:
		return p.Length >= t.number
	case termDrop:
		return p.Dropped
	case termOut:
		return p.Out
	case termIface:
		return p.Iface == t.name
	}
	panic("BUG: capture: a term without a kind")
}

func (t *term) hasFlags(flags uint8) bool {
	if t.exact {
		return flags&t.flags == t.equal
	}
	return flags&t.flags != 0
}

func (d dirQualifier) of(src, dst bool) bool {
	switch d {
	case srcAndDst:
		return src && dst
	case srcOnly:
		return src
	case dstOnly:
		return dst
	case srcOrDst:
	}
	return src || dst
}

// FilterError describes the position and cause of a syntax error in a filter.
type FilterError struct {
	Text string // text of the filter
	At   int    // byte offset of the error
	What string
}

func (e *FilterError) Error() string {
	return fmt.Sprintf("filter: %s\n  %s\n  %s^", e.What, e.Text, strings.Repeat(" ", e.At))
}

// maxFilter limits the length of a filter, and so the depth of its tree.
const maxFilter = 1024

// ParseFilter reads a filter in the syntax of pcap-filter(7), with some additional keywords. It
// returns nil for the empty filter. Errors are of type *FilterError.
//
//	[src|dst] host ADDR          [src|dst] net NET[/LEN]      [tcp|udp] [src|dst] port N
//	[tcp|udp] portrange N-N      ip ip6 tcp udp icmp icmp6    [ip|ip6] proto N|NAME
//	rip test                     ip or ip6 before host, net, port, portrange: that version alone
//	less N   greater N           in out   ifname NAME         drop
//	syn fin rst psh ack urg ece cwr: also tcp[syn], tcp[syn,fin] (one of them) and
//	tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn
//	not ! and && or || ( )
//
// As in pcap-filter(7), "and" and "or" have the same precedence and bind from left to right. A
// value without a keyword uses the last keyword: "port 80 or 443". rip means the course's protocol
// 200, and UDP port 520. The protocol of an IPv6 packet is the one after its extension headers.
func ParseFilter(text string) (*Filter, error) {
	p := filterParser{text: text, last: qualifiers{protocol: -1}}
	if len(text) > maxFilter {
		return nil, p.fail(maxFilter, "longer than %d bytes", maxFilter)
	}
	if err := p.lex(); err != nil {
		return nil, err
	}
	if len(p.words) == 0 {
		return nil, nil //nolint:nilnil // nil is the filter that accepts everything
	}
	root, err := p.expression()
	if err != nil {
		return nil, err
	}
	if !p.atEnd() {
		w := p.peek()
		if w.text == ")" {
			return nil, p.fail(w.at, "this ) has no matching (")
		}
		return nil, p.fail(w.at, "%q: expected \"and\", \"or\" or the end", w.text)
	}
	return &Filter{root}, nil
}
