package capture

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
)

// Facts are what a filter knows of a packet.
type Facts struct {
	Iface   string // the interface's name
	Out     bool   // the node sends it
	Dropped bool   // it went no further
	Length  int    // bytes on the wire

	ipv4       bool
	protocol   uint8
	src, dst   uint32
	ports      bool // it has the next two
	sport      uint16
	dport      uint16
	isTCP      bool // with its flags
	flags      uint8
	tcpHeader  int // where TCP's header begins
	textLength int // of TCP
}

// HeaderBytes is how much of a packet Look and a Follower read at most: the longest headers of IP
// and TCP.
const HeaderBytes = 120

// Look fills in what the packet's first bytes say: HeaderBytes of them, or all.
func (f *Facts) Look(packet []byte) {
	f.ipv4, f.ports, f.isTCP = false, false, false
	if len(packet) < headerBytes || packet[0]>>4 != 4 {
		return
	}
	f.ipv4 = true
	f.protocol = packet[9]
	f.src, f.dst = binary.BigEndian.Uint32(packet[12:]), binary.BigEndian.Uint32(packet[16:])
	header := int(packet[0]&15) * 4
	fragment := binary.BigEndian.Uint16(packet[6:]) & 0x1fff
	if fragment != 0 || header < headerBytes || len(packet) < header+4 ||
		f.protocol != protocolTCP && f.protocol != protocolUDP {
		return
	}
	f.ports = true
	f.sport, f.dport = binary.BigEndian.Uint16(packet[header:]),
		binary.BigEndian.Uint16(packet[header+2:])
	if f.protocol == protocolTCP && len(packet) >= header+20 {
		f.isTCP, f.flags, f.tcpHeader = true, packet[header+13], header
		total := int(binary.BigEndian.Uint16(packet[2:]))
		f.textLength = max(0, total-header-int(packet[header+12]>>4)*4)
	}
}

// Flow is what tells the packets of one TCP connection from others, seen from one of its ends.
type Flow struct {
	Local, Remote netip.AddrPort
}

// Flow returns the flow of a TCP segment as its sender or its receiver sees it, and false for any
// other packet.
func (f *Facts) Flow(ofSender bool) (Flow, bool) {
	src, dst := addrPort(f.src, f.sport), addrPort(f.dst, f.dport)
	if ofSender {
		return Flow{Local: src, Remote: dst}, f.isTCP
	}
	return Flow{Local: dst, Remote: src}, f.isTCP
}

func addrPort(a uint32, port uint16) netip.AddrPort {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], a)
	return netip.AddrPortFrom(netip.AddrFrom4(b), port)
}

// Filter is a parsed filter. A nil one takes every packet.
type Filter struct{ root *term }

// Match reports whether the packet fits. It allocates nothing.
func (f *Filter) Match(p *Facts) bool { return f == nil || f.root.match(p) }

// kindOfTerm is what a term of a filter asks.
type kindOfTerm uint8

const (
	termNot kindOfTerm = iota
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

// which says which end of a packet a term is about.
type which uint8

const (
	eitherEnd which = iota
	bothEnds
	sourceEnd
	targetEnd
)

// term is a node of a filter's tree.
type term struct {
	kind     kindOfTerm
	a, b     *term // of not, and, or
	end      which
	addr     uint32 // a network
	mask     uint32
	low      uint16 // ports, from low to high
	high     uint16
	protocol int   // with ports: that alone, if it is not negative
	flags    uint8 // those that count
	equal    uint8 // what they must be, if exact is set; else one of them is enough
	exact    bool
	negated  bool // of flags: the opposite
	number   int
	name     string
}

func (t *term) match(p *Facts) bool {
	switch t.kind {
	case termNot:
		return !t.a.match(p)
	case termAnd:
		return t.a.match(p) && t.b.match(p)
	case termOr:
		return t.a.match(p) || t.b.match(p)
	case termNet:
		return p.ipv4 && t.end.of(p.src&t.mask == t.addr, p.dst&t.mask == t.addr)
	case termPorts:
		return p.ports && (t.protocol < 0 || int(p.protocol) == t.protocol) &&
			t.end.of(t.low <= p.sport && p.sport <= t.high, t.low <= p.dport && p.dport <= t.high)
	case termProtocol:
		return p.ipv4 && int(p.protocol) == t.protocol
	case termIP:
		return p.ipv4
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

func (w which) of(src, dst bool) bool {
	switch w {
	case bothEnds:
		return src && dst
	case sourceEnd:
		return src
	case targetEnd:
		return dst
	case eitherEnd:
	}
	return src || dst
}

// FilterError says where a filter is wrong.
type FilterError struct {
	Text string // the filter
	At   int    // where in it, in bytes
	What string
}

// Error returns the message, the filter and a caret under the wrong place.
func (e *FilterError) Error() string {
	return fmt.Sprintf("filter: %s\n  %s\n  %s^", e.What, e.Text, strings.Repeat(" ", e.At))
}

// longestFilter bounds a filter, and so the depth of its tree.
const longestFilter = 1024

// ParseFilter reads a filter in pcap-filter(7)'s words, as far as they mean something here, and
// some of our own; nil for the empty one. An error is a *FilterError.
//
//	[src|dst] host ADDR          [src|dst] net NET[/LEN]      [tcp|udp] [src|dst] port N
//	[tcp|udp] portrange N-N      ip tcp udp icmp rip test     [ip] proto N|NAME
//	less N   greater N           in out   ifname NAME         drop
//	syn fin rst psh ack urg ece cwr: also tcp[syn], tcp[syn,fin] (one of them) and
//	tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn
//	not ! and && or || ( )
//
// As there, "and" and "or" bind alike, from left to right, and what stands without a keyword has
// the last one's: "port 80 or 443". rip is the course's protocol 200, and UDP of port 520.
func ParseFilter(text string) (*Filter, error) {
	p := filterParser{text: text, last: qualifiers{protocol: -1}}
	if len(text) > longestFilter {
		return nil, p.wrong(longestFilter, "longer than %d bytes", longestFilter)
	}
	if err := p.lex(); err != nil {
		return nil, err
	}
	if len(p.words) == 0 {
		return nil, nil //nolint:nilnil // that is the filter which takes everything
	}
	root, err := p.expression()
	if err != nil {
		return nil, err
	}
	if !p.over() {
		w := p.peek()
		if w.text == ")" {
			return nil, p.wrong(w.at, "this ) has no matching (")
		}
		return nil, p.wrong(w.at, "expected and, or, or the end, not %q", w.text)
	}
	return &Filter{root}, nil
}
