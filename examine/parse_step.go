package examine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// maxBytes is the maximum that a step sends or writes.
const maxBytes = 100 << 20

// verbs parse the steps of a check.
var verbs = map[string]func(p *parser, s *step){
	"send": func(p *parser, s *step) {
		s.pattern = p.pattern(true, "times")
		if p.peek("times") {
			s.count = p.number("how often")
		}
		if s.count != nil && p.peek("every") {
			s.span, _ = p.span()
		}
	},
	"expect": func(p *parser, s *step) {
		s.pattern = p.pattern(false, "within")
		p.within(s)
	},
	"never": func(p *parser, s *step) { s.pattern = p.pattern(false) },
	"no": func(p *parser, s *step) {
		s.pattern = p.pattern(false, "for")
		if !p.peek("for") {
			p.fail(p.last(), "the line has no time", "for 3 rtt")
			return
		}
		s.span, _ = p.span()
	},
	"most": func(p *parser, s *step) {
		s.count = p.number("a number of packets")
		s.pattern = p.pattern(false, "for")
		if !p.peek("for") {
			p.fail(p.last(), "the line has no time", "for 3 rtt")
			return
		}
		s.span, _ = p.span()
	},
	"peers": func(p *parser, s *step) {
		s.count = p.number("a number of connections")
		what, _ := p.choice("what the peers do", peerActions)
		s.words = []string{what}
	},
	"garbage": func(p *parser, s *step) { s.count = p.number("a number of packets") },
	"receive": func(p *parser, s *step) {
		s.count = p.number("a number of bytes")
		s.acking = p.peek("acking")
		p.within(s)
	},
	"wait":    func(p *parser, s *step) { s.span, _ = p.span() },
	"backoff": (*parser).backoff,
	"printed": func(p *parser, s *step) {
		w, _ := p.next("a text in quotes")
		s.text = []byte(w.text)
		p.within(s)
	},
	"file":     func(p *parser, s *step) { p.within(s) },
	"keep":     (*parser).keep,
	"fresh":    func(*parser, *step) {},
	"then":     func(*parser, *step) {},
	"fill":     func(*parser, *step) {},
	"iss":      func(p *parser, s *step) { s.count = p.number("an initial sequence number") },
	"window":   func(p *parser, s *step) { s.count = p.number("a window") },
	"transfer": (*parser).transfer,

	"listen":   command(CommandListen),
	"connect":  command(CommandConnect),
	"shutdown": command(CommandShutdown),
	"close":    command(CommandClose),
	"recvfile": command(CommandReceiveFile),
	"write":    (*parser).write,
	"sendfile": (*parser).write,
	"read":     counted(CommandRead),
	"up":       counted(CommandUp),
	"down":     counted(CommandDown),
	"test": func(p *parser, s *step) {
		s.command.Kind = CommandTest
		var t term
		if p.addressValue(&t) {
			s.pattern = &pattern{terms: []term{t}}
		}
		w, _ := p.next("a text")
		s.command.Data = []byte(w.text)
	},
}

func command(kind CommandKind) func(p *parser, s *step) {
	return func(_ *parser, s *step) { s.command.Kind = kind }
}

func counted(kind CommandKind) func(p *parser, s *step) {
	return func(p *parser, s *step) {
		s.command.Kind = kind
		s.count = p.number("a number")
	}
}

// last returns the last word of the line.
func (p *parser) last() word { return p.words[len(p.words)-1] }

// number parses a number or an expression.
func (p *parser) number(want string) *expr {
	w, ok := p.next(want)
	if !ok {
		return nil
	}
	e, _ := p.expression(w)
	return e
}

// within parses an optional time.
func (p *parser) within(s *step) {
	if p.peek("within") {
		s.span, _ = p.span()
	}
}

// backoff parses `backoff N FACTOR`.
func (p *parser) backoff(s *step) {
	s.count = p.number("a number of retransmissions, 3 or more")
	w, ok := p.next("the least ratio of successive intervals, such as 1.5")
	if !ok {
		return
	}
	var err error
	if s.factor, err = strconv.ParseFloat(w.text, 64); err != nil || s.factor < 1 {
		p.fail(w, "not a ratio of 1 or more", "such as 1.5")
	}
}

// keep parses `keep NAME FIELD`.
func (p *parser) keep(s *step) {
	name, ok := p.next("a name")
	if !ok {
		return
	}
	if slices.Contains(symbols, name.text) || strings.ContainsFunc(name.text, func(r rune) bool {
		return !unicode.IsLower(r)
	}) {
		p.fail(name, "a reserved or invalid name", "lower-case letters")
		return
	}
	var fields []string
	for _, k := range keys {
		if k.value == numberValue {
			fields = append(fields, k.name)
		}
	}
	field, _ := p.choice("a field", fields)
	s.words = []string{name.text, field}
	p.kept = append(p.kept, name.text)
}

// write parses a number of bytes or a text.
func (p *parser) write(s *step) {
	s.command.Kind = CommandWrite
	if s.verb == "sendfile" {
		s.command.Kind = CommandSendFile
	}
	w, ok := p.next("a number of bytes, or a text in quotes")
	if !ok {
		return
	}
	if w.quoted {
		s.command.Data = []byte(w.text)
		return
	}
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 0 || n > maxBytes {
		p.fail(w, "not a number of bytes", fmt.Sprintf("0 to %d, or a text in quotes", maxBytes))
		return
	}
	s.command.N = n
}

// transfer parses `transfer to|from N [loss P%] [reorder P%] [duplicate P%] [options]`.
func (p *parser) transfer(s *step) {
	direction, ok := p.choice("a direction", []string{"to", "from"})
	if !ok {
		return
	}
	s.words = []string{direction}
	s.count = p.number("a number of bytes")
	for p.at < len(p.words) {
		name, ok := p.choice("an impairment", []string{"loss", "reorder", "duplicate", "options"})
		if !ok {
			return
		}
		if name == "options" {
			s.words = append(s.words, name)
			continue
		}
		w, ok := p.next("a percentage")
		if !ok {
			return
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(w.text, "%"), 64)
		if err != nil || !strings.HasSuffix(w.text, "%") || percent < 0 || percent > 50 {
			p.fail(w, diagnostic.Quote(w.text)+" is not a valid share", "0% to 50%")
			return
		}
		*map[string]*float64{
			"loss": &s.lossy.loss, "reorder": &s.lossy.reorder, "duplicate": &s.lossy.duplicate,
		}[name] = percent / 100
	}
}
