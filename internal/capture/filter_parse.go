package capture

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
)

// filterWord is a token of a filter, with its position.
type filterWord struct {
	text string
	at   int
}

// filterParser reads a filter by recursive descent.
type filterParser struct {
	text  string
	words []filterWord
	next  int
	depth int
	// qualifiers of the previous address or port; an address or port without qualifiers uses them
	last qualifiers
}

// qualifiers are the keywords in front of an address, network or port.
type qualifiers struct {
	protocol int   // protocol of a port; negative: any
	version  uint8 // IP version; 0: any
	dir      dirQualifier
	kind     string // host, net, port, portrange; empty: none so far
}

func (p *filterParser) fail(at int, format string, args ...any) error {
	return &FilterError{Text: p.text, At: min(at, len(p.text)), What: fmt.Sprintf(format, args...)}
}

func (p *filterParser) lex() error {
	for i := 0; i < len(p.text); {
		c := p.text[i]
		n := 1
		switch {
		case c == ' ' || c == '\t' || c == '\n':
			i++
			continue
		case strings.HasPrefix(p.text[i:], "&&"), strings.HasPrefix(p.text[i:], "||"),
			strings.HasPrefix(p.text[i:], "!="), strings.HasPrefix(p.text[i:], "=="):
			n = 2
		case strings.IndexByte("()[]!&|=,", c) >= 0:
		case isWordByte(c):
			for i+n < len(p.text) && isWordByte(p.text[i+n]) {
				n++
			}
		default:
			return p.fail(i, "unexpected %q", string(rune(c)))
		}
		p.words = append(p.words, filterWord{p.text[i : i+n], i})
		i += n
	}
	return nil
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte(`.-/_:@\`, c) >= 0
}

func (p *filterParser) atEnd() bool { return p.next >= len(p.words) }

// peek returns the next token, or an empty one at the end.
func (p *filterParser) peek() filterWord {
	if p.atEnd() {
		return filterWord{"", len(p.text)}
	}
	return p.words[p.next]
}

// take returns the next token and consumes it.
func (p *filterParser) take() filterWord {
	w := p.peek()
	p.next++
	return w
}

// accept consumes the next token if it is one of these.
func (p *filterParser) accept(words ...string) bool {
	for _, w := range words {
		if !p.atEnd() && p.peek().text == w {
			p.next++
			return true
		}
	}
	return false
}

func quote(w filterWord) string {
	if w.text == "" {
		return "the end"
	}
	return strconv.Quote(w.text)
}

func (p *filterParser) expression() (*term, error) {
	const maxDepth = 64
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(p.peek().at, "nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	left, err := p.negation()
	for err == nil {
		kind := termAnd
		switch {
		case p.accept("and", "&&"):
		case p.accept("or", "||"):
			kind = termOr
		default:
			return left, nil
		}
		var right *term
		right, err = p.negation()
		left = &term{kind: kind, a: left, b: right}
	}
	return nil, err
}

func (p *filterParser) negation() (*term, error) {
	not := false
	for p.accept("not", "!") {
		not = !not
	}
	var t *term
	var err error
	if open := p.peek(); p.accept("(") {
		if t, err = p.expression(); err == nil && !p.accept(")") {
			err = p.fail(open.at, "this ( is not closed")
		}
	} else {
		t, err = p.primitive()
	}
	if err != nil {
		return nil, err
	}
	if not {
		t = &term{kind: termNot, a: t}
	}
	return t, nil
}

// protocols maps names of protocols to numbers.
var protocols = map[string]int{
	"test": protocolTest, "icmp": protocolICMP, "tcp": protocolTCP, "udp": protocolUDP,
	"rip": protocolRIP, "icmp6": protocolICMPv6,
}

// versions maps names to the only version of IP that they match.
var versions = map[string]uint8{"ip": 4, "ip6": 6, "icmp": 4, "icmp6": 6, "test": 4, "rip": 4}

func (p *filterParser) primitive() (*term, error) {
	w := p.take()
	switch w.text {
	case "drop", "dropped":
		return &term{kind: termDrop}, nil
	case "out", "outbound":
		return &term{kind: termOut}, nil
	case "in", "inbound":
		return &term{kind: termNot, a: &term{kind: termOut}}, nil
	case "ifname", "on":
		name := p.take()
		if name.text == "" {
			return nil, p.fail(name.at, "expected the name of an interface after %q", w.text)
		}
		return &term{kind: termIface, name: name.text}, nil
	case "less", "greater":
		n, err := p.number(w.text, math.MaxUint16)
		kind := termLess
		if w.text == "greater" {
			kind = termGreater
		}
		return &term{kind: kind, number: n}, err
	case "proto":
		return p.protocol(0)
	case "ip", "ip6":
		version := versions[w.text]
		if p.accept("proto") {
			return p.protocol(version)
		}
		if isQualifier(p.peek().text) {
			return p.qualified(qualifiers{protocol: -1, version: version})
		}
		return &term{kind: termIP, version: version}, nil
	case "tcp", "udp":
		return p.transport(w)
	case "icmp", "icmp6", "test":
		return &term{
			kind: termProtocol, protocol: protocols[w.text], version: versions[w.text],
		}, nil
	case "rip":
		return &term{
			kind: termOr,
			a:    &term{kind: termProtocol, protocol: protocolRIP, version: 4},
			b:    &term{kind: termPorts, low: 520, high: 520, protocol: protocolUDP},
		}, nil
	}
	if flag, ok := flagOf(w.text); ok {
		return &term{kind: termFlags, flags: flag}, nil
	}
	p.next--
	return p.qualified(qualifiers{protocol: -1})
}

func isQualifier(word string) bool {
	switch word {
	case "src", "dst", "host", "net", "port", "portrange":
		return true
	}
	return false
}

func (p *filterParser) transport(w filterWord) (*term, error) {
	number := protocols[w.text]
	open := p.peek()
	switch {
	case w.text == "tcp" && open.text == "[" && open.at == w.at+len(w.text):
		p.next++
		return p.flags(open)
	case isQualifier(open.text):
		return p.qualified(qualifiers{protocol: number})
	}
	return &term{kind: termProtocol, protocol: number}, nil
}

func (p *filterParser) protocol(version uint8) (*term, error) {
	w := p.take()
	if n, ok := protocols[strings.TrimPrefix(w.text, `\`)]; ok {
		return &term{kind: termProtocol, protocol: n, version: version}, nil
	}
	n, err := strconv.ParseUint(w.text, 10, 8)
	if err != nil {
		return nil, p.fail(w.at,
			"expected a protocol (tcp, udp, icmp, icmp6, rip, test, 0-255), not %s", quote(w))
	}
	return &term{kind: termProtocol, protocol: int(n), version: version}, nil
}

func (p *filterParser) number(keyword string, limit int) (int, error) {
	w := p.take()
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 0 || n > limit {
		return 0, p.fail(w.at, "expected a number from 0 to %d after %q, not %s", limit, keyword,
			quote(w))
	}
	return n, nil
}

// qualified parses an address, network or port with its qualifiers.
func (p *filterParser) qualified(q qualifiers) (*term, error) {
	first := p.peek()
	switch {
	case p.accept("src"):
		q.dir = srcOnly
		if p.accept("or") {
			q.dir = srcOrDst
		} else if p.accept("and") {
			q.dir = srcAndDst
		}
		if q.dir != srcOnly && !p.accept("dst") {
			return nil, p.fail(p.peek().at, "expected dst here, not %s", quote(p.peek()))
		}
	case p.accept("dst"):
		q.dir = dstOnly
	}
	keyword := p.peek().text
	if isQualifier(keyword) && keyword != "src" && keyword != "dst" {
		q.kind = keyword
		p.next++
	} else if first == p.peek() && q.protocol < 0 && q.version == 0 {
		q = p.last // the term is only a port number, as in "port 80 or 443"
	}
	w := p.take()
	if q.kind == "" || strings.HasPrefix(q.kind, "port") && strings.ContainsAny(w.text, ".:") {
		q.kind = "host" // the term is only an address, as in "port 80 or 10.0.0.1"
	}
	p.last = q
	switch q.kind {
	case "port", "portrange":
		return p.ports(q, w)
	case "net":
		return p.network(q, w)
	default:
		return p.host(q, w, first)
	}
}

func (p *filterParser) ports(q qualifiers, w filterWord) (*term, error) {
	low, high, isRange := strings.Cut(w.text, "-")
	if !isRange {
		high = low
	}
	a, errLow := strconv.ParseUint(low, 10, 16)
	b, errHigh := strconv.ParseUint(high, 10, 16)
	if errLow != nil || errHigh != nil || a > b || isRange != (q.kind == "portrange") {
		want := "a port from 0 to 65535"
		if q.kind == "portrange" {
			want = "ports like 8000-8010"
		}
		return nil, p.fail(w.at, "expected %s after %q, not %s", want, q.kind, quote(w))
	}
	return &term{
		kind: termPorts, dir: q.dir, protocol: q.protocol, version: q.version,
		low: uint16(a), high: uint16(b),
	}, nil
}

func (p *filterParser) host(q qualifiers, w, first filterWord) (*term, error) {
	a, err := netip.ParseAddr(w.text)
	switch {
	case err == nil && q.fits(a):
		return netTerm(q, netip.PrefixFrom(a, a.BitLen())), nil
	case w.text == "":
		return nil, p.fail(w.at, "the filter is incomplete")
	case w == first:
		return nil, p.fail(w.at, "%s is neither a keyword nor an address", quote(w))
	}
	return nil, p.fail(w.at, "expected an %s address, not %s", q.family(), quote(w))
}

func netTerm(q qualifiers, net netip.Prefix) *term {
	t := &term{kind: termNet, dir: q.dir, net: net, version: 4}
	if net.Addr().Is6() {
		t.version = 6
	}
	return t
}

// fits reports whether an address matches the IP version of the qualifiers.
func (q *qualifiers) fits(a netip.Addr) bool {
	return q.version == 0 || a.Is6() == (q.version == 6)
}

func (q *qualifiers) family() string {
	return [...]string{0: "IP", 4: "IPv4", 6: "IPv6"}[q.version]
}

// network parses 10.1.0.0/16, 10.1, 10.1.0.0 mask 255.255.0.0 or 2001:db8::/32.
func (p *filterParser) network(q qualifiers, w filterWord) (*term, error) {
	text, length, given := strings.Cut(w.text, "/")
	bits := uint64(128)
	if !strings.Contains(text, ":") {
		parts := strings.Count(text, ".") + 1
		text += strings.Repeat(".0", max(0, 4-parts))
		bits = uint64(8 * parts)
	}
	a, err := netip.ParseAddr(text)
	if given && err == nil {
		bits, err = strconv.ParseUint(length, 10, 8)
	}
	if err != nil || !q.fits(a) || bits > uint64(a.BitLen()) {
		return nil, p.fail(w.at, "expected a network like 10.1.0.0/16 or 2001:db8::/32, not %s",
			quote(w))
	}
	if p.accept("mask") {
		w := p.take()
		m, err := netip.ParseAddr(w.text)
		ones, ok := prefixLength(m)
		if err != nil || !ok || !a.Is4() {
			return nil, p.fail(w.at, "expected a mask like 255.255.0.0, not %s", quote(w))
		}
		bits = uint64(ones)
	}
	net := netip.PrefixFrom(a, int(bits))
	if net != net.Masked() {
		return nil, p.fail(w.at, "%s has bits beyond the prefix length", quote(w))
	}
	return netTerm(q, net), nil
}

// prefixLength returns the length of an IPv4 mask; false if its ones are not contiguous.
func prefixLength(mask netip.Addr) (int, bool) {
	if !mask.Is4() {
		return 0, false
	}
	b := mask.As4()
	word := binary.BigEndian.Uint32(b[:])
	ones := bits.LeadingZeros32(^word)
	return ones, word<<ones == 0
}

// flagOf returns the TCP flag with a name: syn or tcp-syn.
func flagOf(word string) (uint8, bool) {
	for i, name := range []string{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"} {
		short := strings.TrimPrefix(word, "tcp-")
		if short == name || short == "push" && name == "psh" {
			return 1 << i, true
		}
	}
	return 0, false
}

// flags parses the brackets of tcp[…] and the rest of the term.
func (p *filterParser) flags(open filterWord) (*term, error) {
	t := &term{kind: termFlags}
	if w := p.peek(); p.accept("tcpflags", "13") {
		if !p.accept("]") {
			return nil, p.fail(open.at, "this [ is not closed")
		}
		return p.comparison(t, w)
	}
	for {
		w := p.take()
		flag, ok := flagOf(w.text)
		if !ok {
			return nil, p.fail(w.at,
				"expected flags (syn, fin, rst, psh, ack, urg, ece, cwr, tcpflags), not %s",
				quote(w))
		}
		t.flags |= flag
		switch {
		case p.accept("]"):
			return t, nil
		case !p.accept(",", "|"):
			return nil, p.fail(open.at, "this [ is not closed")
		}
	}
}

// comparison parses what follows tcp[tcpflags]: "& MASK != 0", "& MASK == FLAGS", "== FLAGS".
func (p *filterParser) comparison(t *term, at filterWord) (*term, error) {
	t.flags = math.MaxUint8
	var err error
	if p.accept("&") {
		if t.flags, err = p.mask(); err != nil {
			return nil, err
		}
	}
	t.exact = true
	switch {
	case p.accept("==", "="):
	case p.accept("!="):
		t.negated = true
	default:
		return nil, p.fail(p.peek().at, "expected a comparison of %s like & tcp-syn != 0, not %s",
			quote(at), quote(p.peek()))
	}
	t.equal, err = p.mask()
	return t, err
}

// mask parses flags by name or by number: tcp-syn, (tcp-syn|tcp-ack), 0x12.
func (p *filterParser) mask() (uint8, error) {
	open := p.peek()
	inside := p.accept("(")
	var m uint8
	for {
		w := p.take()
		flag, ok := flagOf(w.text)
		if !ok {
			n, err := strconv.ParseUint(w.text, 0, 8)
			if err != nil {
				return 0, p.fail(w.at, "expected flags like tcp-syn or a number, not %s", quote(w))
			}
			flag = uint8(n)
		}
		m |= flag
		switch {
		case inside && p.accept(")"), !inside && p.peek().text != "|":
			return m, nil
		case !p.accept("|"):
			return 0, p.fail(open.at, "this ( is not closed")
		}
	}
}
