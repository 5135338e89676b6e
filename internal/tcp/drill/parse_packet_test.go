package drill

import (
	"encoding/binary"
	"strings"

	"github.com/tidepool-net/tidepool/internal/tcp"
)

// packet reads < or > and the segment after it.
func (p *parser) packet() (action, error) {
	first := p.pos
	outbound := p.take().text == ">"
	mark, err := p.ecn()
	if err != nil {
		return nil, err
	}
	if p.is("icmp") {
		if outbound {
			return nil, p.fail(p.peek(), "an outbound icmp: TCP sends none")
		}
		return p.icmp()
	}
	s := &segment{outbound: outbound, ecn: mark, window: -1, urgent: -1}
	if mark == ecnECT01 && !outbound {
		return nil, p.fail(p.peek(), "[ect01] is for outbound segments")
	}
	for _, step := range []func(*segment) error{
		p.ports, p.flags, p.sequence, p.fields, p.optionList,
	} {
		if err := step(s); err != nil {
			return nil, err
		}
	}
	if !outbound && s.window < 0 {
		return nil, p.fail(p.tokens[first], "an inbound segment needs a win")
	}
	s.raw = p.written(first)
	return s, nil
}

// written returns the script's text from the given token on, on one line.
func (p *parser) written(first int) string {
	text := p.text[p.tokens[first].start:p.tokens[p.pos-1].end]
	return strings.Join(strings.Fields(text), " ")
}

// ecn reads [ect0] or (ect0).
func (p *parser) ecn() (ecnMark, error) {
	var end string
	switch {
	case p.accept("["):
		end = "]"
	case p.accept("("):
		end = ")"
	default:
		return ecnUnchecked, nil
	}
	marks := map[string]ecnMark{
		"noecn": ecnNone, "ect0": ecnECT0, "ect1": ecnECT1, "ce": ecnCE, "ect01": ecnECT01,
	}
	t := p.take()
	m, ok := marks[t.text]
	if !ok {
		return 0, p.fail(t, "%s: want noecn, ect0, ect1, ect01 or ce", t)
	}
	return m, p.expect(end)
}

// ports reads 40000 > 8080.
func (p *parser) ports(s *segment) error {
	if p.peek().kind != tokInt {
		return nil
	}
	for i := range s.ports {
		if i == 1 {
			if err := p.expect(">"); err != nil {
				return err
			}
		}
		n, err := p.number("a port", 1, 65535)
		if err != nil {
			return err
		}
		s.ports[i] = uint16(n)
	}
	return nil
}

// flagLetters are packetdrill's letters for the flags.
var flagLetters = map[rune]tcp.Flags{
	'F': tcp.FIN, 'S': tcp.SYN, 'R': tcp.RST, 'P': tcp.PSH, '.': tcp.ACK,
	'U': tcp.URG, 'E': tcp.ECE, 'W': tcp.CWR,
}

// flags reads S. or P., or - for no flags.
func (p *parser) flags(s *segment) error {
	t := p.take()
	s.flags = t.text
	if t.kind == tokWord && p.accept(".") {
		s.flags += "."
	}
	if s.flags == "-" {
		return nil
	}
	for _, r := range s.flags {
		f, ok := flagLetters[r]
		if !ok || s.header.Flags.Has(f) {
			return p.fail(t, "%q are not flags", s.flags)
		}
		s.header.Flags |= f
	}
	return nil
}

// sequence reads 1:1001(1000).
func (p *parser) sequence(s *segment) error {
	t := p.peek()
	start, n, err := p.extent()
	if err != nil {
		return err
	}
	if n > 65535 {
		return p.fail(t, "a payload of %d bytes", n)
	}
	s.header.Seq, s.length = start, n
	return nil
}

func (p *parser) extent() (start uint32, n int, err error) {
	t := p.peek()
	a, err := p.number("a sequence number", 0, 1<<32-1)
	if err != nil {
		return 0, 0, err
	}
	if err = p.expect(":"); err != nil {
		return 0, 0, err
	}
	b, err := p.number("a sequence number", 0, 1<<32-1)
	if err != nil {
		return 0, 0, err
	}
	if err = p.expect("("); err != nil {
		return 0, 0, err
	}
	k, err := p.number("a length", 0, 1<<20)
	if err != nil {
		return 0, 0, err
	}
	if uint32(a)+uint32(k) != uint32(b) {
		return 0, 0, p.fail(t, "%d:%d is not %d bytes", a, b, k)
	}
	return uint32(a), int(k), p.expect(")")
}

// fields reads ack 1 win 257 urg 1.
func (p *parser) fields(s *segment) error {
	if p.accept("ack") {
		n, err := p.number("an acknowledgment", 0, 1<<32-1)
		if err != nil {
			return err
		}
		s.header.Ack = uint32(n)
	}
	if p.accept("win") {
		n, err := p.number("a window", 0, 65535)
		if err != nil {
			return err
		}
		s.window = int(n)
	}
	if p.accept("urg") {
		n, err := p.number("an urgent pointer", 0, 65535)
		if err != nil {
			return err
		}
		s.urgent = int(n)
	}
	return nil
}

// optionList reads <mss 1460,nop,wscale 7> and encodes it.
func (p *parser) optionList(s *segment) error {
	if !p.is("<") {
		return nil
	}
	open := p.take()
	if p.peek().kind == tokEllipsis {
		p.pos++
		if !s.outbound {
			return p.fail(open, "<...> is for outbound segments")
		}
		s.anyOpts = true
		return p.expect(">")
	}
	for {
		if err := p.oneOption(s); err != nil {
			return err
		}
		if !p.accept(",") {
			break
		}
	}
	if len(s.options)%4 != 0 || len(s.options) > 40 {
		return p.fail(open, "options of %d bytes: pad with nop or eol, 40 at most", len(s.options))
	}
	return p.expect(">")
}

func (p *parser) oneOption(s *segment) error {
	t := p.take()
	put := func(b ...byte) { s.options = append(s.options, b...) }
	switch t.text {
	case "nop":
		put(1)
	case "eol":
		put(0)
	case "mss":
		n, err := p.number("an MSS", 0, 65535)
		if err != nil {
			return err
		}
		put(2, 4, byte(n>>8), byte(n))
	case "wscale":
		n, err := p.number("a window scale", 0, 255)
		if err != nil {
			return err
		}
		put(3, 3, byte(n))
	case "sackOK":
		put(4, 2)
	case "sack":
		return p.sackOption(s)
	case "TS":
		return p.timestampOption(s)
	default:
		return p.fail(t, "%s is not an option", t)
	}
	return nil
}

// sackOption reads 1:1001 3001:4001.
func (p *parser) sackOption(s *segment) error {
	at := len(s.options)
	s.options = append(s.options, 5, 2)
	for p.peek().kind == tokInt {
		for i := range 2 {
			if i == 1 {
				if err := p.expect(":"); err != nil {
					return err
				}
			}
			n, err := p.number("a SACK edge", 0, 1<<32-1)
			if err != nil {
				return err
			}
			s.options = binary.BigEndian.AppendUint32(s.options, uint32(n))
		}
		if len(s.options)-at > 40 {
			return p.fail(p.peek(), "too many SACK blocks")
		}
	}
	s.options[at+1] = byte(len(s.options) - at)
	return nil
}

// timestampOption reads val 100 ecr 0.
func (p *parser) timestampOption(s *segment) error {
	s.options = append(s.options, 8, 10)
	s.hasTS = true
	for _, name := range []string{"val", "ecr"} {
		if err := p.expect(name); err != nil {
			return err
		}
		n, err := p.number("a timestamp", 0, 1<<32-1)
		if err != nil {
			return err
		}
		s.options = binary.BigEndian.AppendUint32(s.options, uint32(n))
	}
	return nil
}

// icmp reads icmp unreachable frag_needed mtu 1000 [1:1461(1460)].
func (p *parser) icmp() (action, error) {
	p.pos++
	r := &report{kind: p.take().text, mtu: -1}
	if p.peek().kind == tokWord && !p.is("mtu") {
		r.code = p.take().text
	}
	if p.accept("mtu") {
		n, err := p.number("an MTU", 0, 65535)
		if err != nil {
			return nil, err
		}
		r.mtu = int(n)
	}
	if p.accept("[") {
		start, _, err := p.extent()
		if err != nil {
			return nil, err
		}
		r.seq = start
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	return r, nil
}
