package drill

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The limits of a script.
const (
	maxTime  = 10000000 * time.Second
	maxDepth = 32 // of nested arguments or expressions
)

// Parse reads a script. Its errors are *Error with the file's name and the line.
func Parse(name, text string) (*Script, error) {
	l := lexer{file: name, text: text, line: 1}
	tokens, err := l.all()
	if err != nil {
		return nil, err
	}
	p := &parser{file: name, text: text, tokens: tokens, script: &Script{name: name}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.script, nil
}

// parser reads tokens. It reports only the first error.
type parser struct {
	file   string
	text   string
	tokens []token
	pos    int
	depth  int
	script *Script
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) take() token {
	t := p.tokens[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

func (p *parser) fail(t token, format string, args ...any) error {
	return &Error{File: p.file, Line: t.line, Text: fmt.Sprintf(format, args...)}
}

// is reports whether the next token is the given word or sign.
func (p *parser) is(text string) bool {
	t := p.peek()
	return (t.kind == tokSign || t.kind == tokWord) && t.text == text
}

// accept takes the next token if it is the given word or sign.
func (p *parser) accept(text string) bool {
	if p.is(text) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if !p.accept(text) {
		return p.fail(p.peek(), "%s: want %q", p.peek(), text)
	}
	return nil
}

func (p *parser) parse() error {
	for p.peek().kind == tokOption {
		if err := p.option(); err != nil {
			return err
		}
	}
	for p.peek().kind == tokShell {
		c, err := p.commands(p.take())
		if err != nil {
			return err
		}
		p.script.setup = append(p.script.setup, c...)
	}
	for p.peek().kind != tokEnd {
		if err := p.event(); err != nil {
			return err
		}
	}
	switch first := p.script.events; {
	case len(first) == 0:
		return p.fail(p.peek(), "no events")
	case first[0].when != timing{} && first[0].when != timing{kind: relative}:
		return p.fail(token{line: first[0].line}, "the first event is not at time 0")
	}
	return nil
}

// option reads --name or --name=value.
func (p *parser) option() error {
	o := option{line: p.peek().line, name: p.take().text}
	if p.accept("=") {
		t := p.take()
		if t.kind == tokEnd || t.kind == tokSign || t.kind == tokOption {
			return p.fail(t, "%s: want the value of --%s", t, o.name)
		}
		o.value = t.text
	}
	p.script.options = append(p.script.options, o)
	return nil
}

func (p *parser) event() error {
	e := event{line: p.peek().line}
	var err error
	if e.when, err = p.timing(); err != nil {
		return err
	}
	t := p.peek()
	switch {
	case p.is("<") || p.is(">"):
		e.act, err = p.packet()
	case t.kind == tokShell:
		p.pos++
		var c commands
		c, err = p.commands(t)
		e.act = c
	case t.kind == tokCode:
		p.pos++
		var a assertions
		a, err = p.assertions(t)
		e.act = a
	case t.kind == tokWord || t.kind == tokEllipsis:
		e.act, err = p.call(e.when)
	default:
		err = p.fail(t, "%s: want a call, a packet or a command", t)
	}
	if err != nil {
		return err
	}
	if s, ok := e.act.(*segment); (e.when.ranged || e.when.kind == anyTime) && !(ok && s.outbound) {
		return p.fail(token{line: e.line}, "only an outbound segment may have a time range or *")
	}
	p.script.events = append(p.script.events, e)
	return nil
}

// timing reads 0.1, +.1, 1~2, +.1~+.2 or *.
func (p *parser) timing() (timing, error) {
	var w timing
	if p.accept("*") {
		return timing{kind: anyTime}, nil
	}
	if p.accept("+") {
		w.kind = relative
	}
	var err error
	if w.from, err = p.seconds(); err != nil {
		return w, err
	}
	w.to = w.from
	if p.is("~") {
		p.pos++
		w.ranged = true
		if w.kind == relative {
			if err = p.expect("+"); err != nil {
				return w, err
			}
		}
		if w.to, err = p.seconds(); err != nil {
			return w, err
		}
		if w.to < w.from {
			return w, p.fail(p.peek(), "the time range ends before it starts")
		}
	}
	return w, nil
}

func (p *parser) seconds() (time.Duration, error) {
	t := p.take()
	if t.kind != tokInt && t.kind != tokFloat {
		return 0, p.fail(t, "%s: want a time", t)
	}
	s, err := strconv.ParseFloat(t.text, 64)
	if err != nil || s < 0 || s > maxTime.Seconds() {
		return 0, p.fail(t, "%s is not a time", t)
	}
	return time.Duration(s*1e6+0.5) * time.Microsecond, nil
}

// number reads an integer from low to high.
func (p *parser) number(what string, low, high int64) (int64, error) {
	t := p.take()
	if t.kind != tokInt {
		return 0, p.fail(t, "%s: want %s", t, what)
	}
	n, err := strconv.ParseInt(t.text, 0, 64)
	if err != nil {
		n, err = strconv.ParseInt(t.text, 10, 64) // leading zeros do not mean octal
	}
	if err != nil || n < low || n > high {
		return 0, p.fail(t, "%s is out of range: %s, want %d to %d", what, t.text, low, high)
	}
	return n, nil
}

// commands splits the text of a `…` block at newlines, ; and &&, and each command into words.
func (p *parser) commands(t token) (commands, error) {
	var all commands
	for i, line := range strings.Split(t.text, "\n") {
		if cut := strings.IndexByte(line, '#'); cut >= 0 {
			line = line[:cut]
		}
		line = strings.ReplaceAll(line, "&&", ";")
		for one := range strings.SplitSeq(line, ";") {
			words, err := shellWords(one)
			if err != nil {
				return nil, p.fail(token{line: t.line + i}, "%v", err)
			}
			if len(words) > 0 {
				all = append(all, command{line: t.line + i, words: words})
			}
		}
	}
	return all, nil
}

// shellWords splits at spaces, but not within quotes.
func shellWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\r'):
			if open {
				words = append(words, word.String())
				word.Reset()
			}
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("unterminated quote %c", quote)
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
