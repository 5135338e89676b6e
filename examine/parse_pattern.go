package examine

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// symbols are the names whose values an execution knows. See execution.symbol.
var symbols = []string{"next", "got", "win", "edge", "mss"}

// pattern parses a pattern; sending is set for a template. The pattern ends before a word of stop.
func (p *parser) pattern(sending bool, stop ...string) *pattern {
	w, ok := p.next("flags of a segment such as S. or F., or packet, rip or any")
	if !ok {
		return nil
	}
	start := p.at - 1
	x := &pattern{}
	switch w.text {
	case "packet":
		x.kind = packetKind
	case "any":
		x.kind = anyKind
		if sending {
			p.fail(w, "any cannot describe a packet to send", "flags of a segment, packet or rip")
			return nil
		}
	case "rip":
		x.kind = ripKind
		command, ok := p.choice("a command of RIP", []string{"request", "response"})
		if !ok {
			return nil
		}
		x.flags = byte(slices.Index([]string{"", "request", "response"}, command))
	default:
		x.kind = segmentKind
		if !p.flags(w, x) {
			return nil
		}
	}
	for p.at < len(p.words) && !slices.Contains(stop, p.words[p.at].text) {
		if !p.term(x, sending) {
			return nil
		}
	}
	var texts []string
	for _, w := range p.words[start:p.at] {
		if w.quoted {
			w.text = strconv.Quote(w.text)
		}
		texts = append(texts, w.text)
	}
	x.text = strings.Join(texts, " ")
	return x
}

func (p *parser) flags(w word, x *pattern) bool {
	if w.text == "-" {
		return true
	}
	for _, r := range w.text {
		bit := strings.IndexRune(flagLetters, r)
		if bit < 0 {
			p.fail(w, fmt.Sprintf("%s is not a list of flags", diagnostic.Quote(w.text)),
				"letters of "+flagLetters+", - for none, or packet, rip or any")
			return false
		}
		x.flags |= 1 << bit
	}
	return true
}

// term parses one field.
func (p *parser) term(x *pattern, sending bool) bool {
	w, _ := p.next("")
	var names []string
	for _, k := range keys {
		segments := x.kind == anyKind && k.kind == segmentKind
		if k.kind != anyKind && k.kind != x.kind && !segments || sending && !k.send {
			continue
		}
		names = append(names, k.name)
		if k.name == w.text {
			t := term{key: k.name}
			if !p.value(&t, k.value, sending) {
				return false
			}
			x.terms = append(x.terms, t)
			return true
		}
	}
	p.fail(w, "unknown field "+diagnostic.Quote(w.text)+diagnostic.DidYouMean(w.text, names),
		"one of "+diagnostic.OneOf(names))
	return false
}

func (p *parser) value(t *term, kind valueKind, sending bool) bool {
	switch kind {
	case addressValue:
		return p.addressValue(t)
	case sumValue:
		w, ok := p.choice("a checksum", []string{"ok", "bad"})
		t.bad = w == "bad"
		return ok
	case routeValue, noRouteValue:
		w, ok := p.next("a prefix such as 10.9.0.0/16")
		if !ok {
			return false
		}
		if !p.prefix(t, w) {
			return false
		}
		if kind == noRouteValue {
			return true
		}
		if !p.peek("cost") {
			w, _ := p.next("cost N")
			p.fail(w, "the route has no cost", "cost N")
			return false
		}
		return p.numbers(t, sending)
	case textValue, hexValue:
		w, ok := p.next("a text")
		t.text = []byte(w.text)
		if ok && kind == hexValue {
			var err error
			if t.text, err = hex.DecodeString(w.text); err != nil {
				p.fail(w, "not hexadecimal", "such as fd04aabb")
				return false
			}
		}
		return ok
	case numberValue:
	}
	return p.numbers(t, sending)
}

// prefix parses a prefix, or the network of a link.
func (p *parser) prefix(t *term, w word) bool {
	number, named := strings.CutPrefix(w.text, "net")
	if n, err := strconv.Atoi(number); named && err == nil && n >= 0 && n < links {
		t.text = []byte(w.text)
		return true
	}
	var err error
	if t.prefix, err = netip.ParsePrefix(w.text); err != nil {
		p.fail(w, "not a prefix", "such as 10.9.0.0/16, or net1 for the network of link 1")
		return false
	}
	return true
}

// numbers parses the value of a numeric field. In an expected packet it may also be a range, a
// comparison, `any` or `none`.
func (p *parser) numbers(t *term, sending bool) bool {
	w, ok := p.next("a number")
	if !ok {
		return false
	}
	if !sending {
		switch w.text {
		case "any":
			return true
		case "none":
			t.not = true
			return true
		}
		for _, op := range []string{">=", "<=", ">", "<", "!="} {
			if rest, ok := strings.CutPrefix(w.text, op); ok {
				return p.comparison(t, op, word{rest, w.col + len(op), false})
			}
		}
		if lo, hi, ok := strings.Cut(w.text, ".."); ok {
			if t.lo, ok = p.expression(word{lo, w.col, false}); !ok {
				return false
			}
			t.hi, ok = p.expression(word{hi, w.col + len(lo) + 2, false})
			return ok
		}
	}
	if t.lo, ok = p.expression(w); ok {
		t.hi = t.lo
	}
	return ok
}

// The limits of a comparison are far beyond all values of fields.
const least, most = -(1 << 40), 1 << 40

func (p *parser) comparison(t *term, op string, w word) bool {
	e, ok := p.expression(w)
	if !ok {
		p.fail(w, "the comparison has no value", "a number")
		return false
	}
	one := func(sign int64) *expr {
		return &expr{append(slices.Clone(e.parts), exprPart{sign: sign, number: 1})}
	}
	t.lo, t.hi = &expr{[]exprPart{{1, least, ""}}}, &expr{[]exprPart{{1, most, ""}}}
	switch op {
	case ">=":
		t.lo = e
	case "<=":
		t.hi = e
	case ">":
		t.lo = one(1)
	case "<":
		t.hi = one(-1)
	case "!=":
		t.lo, t.hi, t.not = e, e, true
	}
	return true
}

func (p *parser) addressValue(t *term) bool {
	const want = "an address, subject or peer, with the number of a link behind it"
	w, ok := p.next(want)
	if !ok {
		return false
	}
	if a, err := netip.ParseAddr(w.text); err == nil {
		t.prefix = netip.PrefixFrom(a, a.BitLen())
		return true
	}
	for _, end := range []string{"subject", "peer"} {
		rest, ok := strings.CutPrefix(w.text, end)
		if n, err := strconv.Atoi(rest); ok && (rest == "" || err == nil && n >= 0 && n < links) {
			t.text = []byte(w.text)
			return true
		}
	}
	p.fail(w, "not an address", want)
	return false
}
