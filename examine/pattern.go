package examine

import (
	"bytes"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// pattern describes packets: one to send (a template), or an expected one. A field that the pattern
// does not name has a default value in a template, and may have any value in an expected packet.
type pattern struct {
	kind kind
	// TCP flags that must be set; of S, F, R and A, the others must not be; for RIP: the command
	flags byte
	terms []term
	text  string
}

// kind is what a pattern describes.
type kind int

const (
	anyKind     kind = iota
	segmentKind      // a segment of the connection
	packetKind       // an IP packet
	ripKind          // a RIP message
)

// term is one field of a pattern. An expected value is between lo and hi.
type term struct {
	key    string
	lo, hi *expr
	not    bool // the value must be outside of the range, or absent if lo is nil
	text   []byte
	prefix netip.Prefix
	bad    bool // the checksum is bad
}

// expr is a sum of numbers and symbols.
type expr struct {
	parts []exprPart
}

type exprPart struct {
	sign   int64
	number int64
	symbol string // empty: the value is number
}

// value computes the expression. The parser has checked that the symbols exist.
func (e *expr) value(symbol func(name string) int64) int64 {
	sum := int64(0)
	for _, p := range e.parts {
		n := p.number
		if p.symbol != "" {
			n = symbol(p.symbol)
		}
		sum += p.sign * n
	}
	return sum
}

// valueKind is the syntax of a key's value.
type valueKind int

const (
	numberValue valueKind = iota
	addressValue
	textValue
	sumValue
	hexValue
	routeValue
	noRouteValue
)

// keys are the fields of packets, in the order of their kinds.
var keys = []struct {
	name  string
	kind  kind // anyKind: all kinds have the field
	value valueKind
	send  bool // templates may have the field
	about string
}{
	{"on", anyKind, numberValue, true, "number of the link"},
	{"ttl", anyKind, numberValue, true, "time to live"},
	{"src", anyKind, addressValue, true, "source address"},
	{"dst", anyKind, addressValue, true, "destination address"},
	{"ipsum", anyKind, sumValue, true, "header checksum: ok or bad"},
	{"sum", anyKind, sumValue, true, "checksum of the transport: ok or bad"},
	{"iplen", anyKind, numberValue, true, "total length"},
	{"ihl", anyKind, numberValue, true, "header length in words"},
	{"version", anyKind, numberValue, true, "version of IP"},
	{"id", anyKind, numberValue, true, "identification"},
	{"mf", anyKind, numberValue, true, "more fragments"},
	{"off", anyKind, numberValue, true, "fragment offset in bytes"},
	{"fragments", anyKind, numberValue, true, "payload of each fragment, a multiple of 8"},
	{"trailer", anyKind, numberValue, true, "bytes behind the end of the packet"},
	{"data", anyKind, textValue, true, "payload as text"},
	{"len", anyKind, numberValue, true, "payload in bytes"},
	{"ipoptions", anyKind, hexValue, true, "options of IP in hexadecimal"},

	{"seq", segmentKind, numberValue, true, "sequence number from the sender's SYN"},
	{"ack", segmentKind, numberValue, true, "acknowledgment number from the other's SYN"},
	{"win", segmentKind, numberValue, true, "window on the wire"},
	{"urg", segmentKind, numberValue, true, "urgent pointer"},
	{"sport", segmentKind, numberValue, true, "source port"},
	{"dport", segmentKind, numberValue, true, "destination port"},
	{"offset", segmentKind, numberValue, true, "data offset in words"},
	{"mss", segmentKind, numberValue, true, "MSS option"},
	{"wscale", segmentKind, numberValue, true, "shift of the window scale option"},
	{"sackok", segmentKind, numberValue, true, "SACK-permitted option (sackok 0)"},
	{"tsval", segmentKind, numberValue, true, "value of the timestamps option"},
	{"tsecr", segmentKind, numberValue, false, "echo of the timestamps option"},
	{"sackfrom", segmentKind, numberValue, true, "left edge of the first SACK block"},
	{"sackto", segmentKind, numberValue, true, "right edge of the first SACK block"},
	{"options", segmentKind, hexValue, true, "options of TCP in hexadecimal"},
	{"end", segmentKind, numberValue, false, "sequence number behind the segment"},
	{"isn", segmentKind, numberValue, false, "initial sequence number on the wire"},

	{"proto", packetKind, numberValue, true, "protocol"},
	{"type", packetKind, numberValue, true, "type of ICMP"},
	{"code", packetKind, numberValue, true, "code of ICMP"},

	{"route", ripKind, routeValue, true, "an entry: route PREFIX cost N"},
	{"noroute", ripKind, noRouteValue, false, "no entry with the prefix"},
	{"entries", ripKind, numberValue, true, "number of entries"},
}

// fact returns the value of a numeric field of a packet, or false if the packet does not have it.
func (x *execution) fact(key string, p *packet) (int64, bool) {
	if s := p.tcp; s != nil {
		if n, ok := x.segmentFact(key, p, s); ok {
			return n, true
		}
	}
	if m := p.rip; m != nil && key == "entries" {
		return int64(len(m.entries)), true
	}
	switch key {
	case "on":
		return int64(p.link), true
	case "ttl":
		return int64(p.ip.TTL), true
	case "iplen":
		return int64(p.ip.TotalLen), true
	case "ihl":
		return int64(p.ip.Len / 4), true
	case "version":
		return int64(p.raw[0] >> 4), true
	case "id":
		return int64(p.ip.ID), true
	case "off":
		return int64(p.ip.FragOff), true
	case "mf":
		return truth(p.ip.MF), true
	case "proto":
		return int64(p.ip.Protocol), true
	case "len":
		return int64(len(p.body)), true
	}
	if p.ip.Protocol == ip.ProtoICMP && len(p.body) >= icmpHeaderLen {
		switch key {
		case "type":
			return int64(p.body[0]), true
		case "code":
			return int64(p.body[1]), true
		}
	}
	return 0, false
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (x *execution) segmentFact(key string, p *packet, s *segment) (int64, bool) {
	seq, ack := x.conn.relative(s, p.sent)
	switch key {
	case "seq":
		return seq, true
	case "end":
		return seq + s.span(), true
	case "isn":
		return int64(s.seq), s.flags&flagSYN != 0
	case "ack":
		return ack, s.flags&flagACK != 0
	case "len":
		return int64(len(s.data)), true
	case "win":
		return int64(s.win), true
	case "urg":
		return int64(s.urg), true
	case "sport":
		return int64(s.sport), true
	case "dport":
		return int64(s.dport), true
	case "offset":
		return int64(tcpHeaderLen+len(s.options)) / 4, true
	}
	for _, o := range optionKeys {
		if o.name == key {
			n, ok := o.value(s)
			if key == "sackfrom" || key == "sackto" {
				n = int64(int32(uint32(n) - x.conn.iss))
			}
			return n, ok
		}
	}
	return 0, false
}

// matches reports whether a received packet matches a pattern.
func (x *execution) matches(w *pattern, p *packet) bool {
	switch w.kind {
	case segmentKind:
		const decisive = flagSYN | flagFIN | flagRST | flagACK
		if p.tcp == nil || !x.conn.owns(p) || p.tcp.flags&decisive != w.flags&decisive ||
			w.flags&^p.tcp.flags != 0 {
			return false
		}
	case ripKind:
		if p.rip == nil || p.rip.command != int(w.flags) {
			return false
		}
	case anyKind:
		if !x.conn.owns(p) {
			return false
		}
	case packetKind:
	}
	for i := range w.terms {
		if !x.holds(&w.terms[i], p) {
			return false
		}
	}
	return true
}

// holds reports whether a packet matches one term.
func (x *execution) holds(t *term, p *packet) bool {
	switch t.key {
	case "src":
		return p.ip.Src == x.address(t)
	case "dst":
		return p.ip.Dst == x.address(t)
	case "data":
		if p.tcp != nil {
			return bytes.Equal(p.tcp.data, t.text)
		}
		return bytes.Equal(p.body, t.text)
	case "ipsum", "sum":
		return t.bad == (p.fail != "")
	case "route", "noroute":
		return x.routes(t, p)
	}
	n, ok := x.fact(t.key, p)
	if t.lo == nil {
		return ok != t.not
	}
	if !ok {
		return false
	}
	inside := n >= t.lo.value(x.symbol) && n <= t.hi.value(x.symbol)
	return inside != t.not
}

func (x *execution) routes(t *term, p *packet) bool {
	for _, e := range p.rip.entries {
		if e.prefix != x.prefix(t) {
			continue
		}
		if t.key == "noroute" {
			return false
		}
		n := int64(e.cost)
		if n >= t.lo.value(x.symbol) && n <= t.hi.value(x.symbol) {
			return true
		}
	}
	return t.key == "noroute"
}

// prefix returns the prefix of a route. If the links have no masks, the prefix of a link's network
// is the subject's address.
func (x *execution) prefix(t *term) netip.Prefix {
	if t.prefix.IsValid() {
		return t.prefix
	}
	l := x.setup.Links[int(t.text[len(t.text)-1]-'0')]
	return l.Addr.Masked()
}

// find returns the first term with a key.
func (w *pattern) find(key string) *term {
	for i := range w.terms {
		if w.terms[i].key == key {
			return &w.terms[i]
		}
	}
	return nil
}

// address returns the address of a term: either an address that the check names, or the address of
// a link's end.
func (x *execution) address(t *term) netip.Addr {
	if t.prefix.IsValid() {
		return t.prefix.Addr()
	}
	a, _ := x.endOf(string(t.text))
	return a
}

// endOf returns the address for a name such as subject1 or peer.
func (x *execution) endOf(name string) (netip.Addr, bool) {
	for i, l := range x.setup.Links {
		for _, end := range []struct {
			name string
			addr netip.Addr
		}{{"subject", l.Addr.Addr()}, {"peer", l.Peer}} {
			if name == fmt.Sprint(end.name, i) || i == 0 && name == end.name {
				return end.addr, true
			}
		}
	}
	return netip.Addr{}, false
}
