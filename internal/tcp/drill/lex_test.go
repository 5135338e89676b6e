package drill

import (
	"fmt"
	"strings"
)

// Error is an error in a script, or a difference between the host's behaviour and the script.
type Error struct {
	File string
	Line int
	Text string
}

// Error returns FILE:LINE: text.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Text) }

type tokenKind uint8

const (
	tokEnd      tokenKind = iota
	tokWord               // letters, digits and _
	tokInt                // also 0x…
	tokFloat              // has a point
	tokString             // "…", without the quotes
	tokShell              // `…`
	tokCode               // %{ … }%
	tokOption             // --name, without the dashes
	tokAddress            // 192.0.2.1
	tokEllipsis           // ...
	tokSign               // any other character
)

// token is one piece of a script.
type token struct {
	kind tokenKind
	text string
	line int
	// start and end are the token's position in the script.
	start, end int
}

func (t token) String() string {
	if t.kind == tokEnd {
		return "the end"
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer splits a script into tokens.
type lexer struct {
	file   string
	text   string
	pos    int
	line   int
	python bool // an expression: // divides
}

func (l *lexer) fail(line int, format string, args ...any) error {
	return &Error{File: l.file, Line: line, Text: fmt.Sprintf(format, args...)}
}

// all returns the tokens. The last is tokEnd.
func (l *lexer) all() ([]token, error) {
	var tokens []token
	for {
		if err := l.skip(); err != nil {
			return nil, err
		}
		start := l.pos
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		t.start, t.end = start, l.pos
		tokens = append(tokens, t)
		if t.kind == tokEnd {
			return tokens, nil
		}
	}
}

// skip skips space and comments.
func (l *lexer) skip() error {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.ContainsRune(" \t\r\n", rune(rest[0])):
			l.advance(1)
		case rest[0] == '#', strings.HasPrefix(rest, "//") && !l.python:
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.advance(end)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return l.fail(l.line, "unterminated comment")
			}
			l.advance(end + 2)
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) advance(n int) {
	l.line += strings.Count(l.text[l.pos:l.pos+n], "\n")
	l.pos += n
}

// quoted are the tokens with opening and closing delimiters.
var quoted = []struct {
	open, end string
	kind      tokenKind
}{{`"`, `"`, tokString}, {"`", "`", tokShell}, {"%{", "}%", tokCode}}

func (l *lexer) next() (token, error) {
	rest := l.text[l.pos:]
	t := token{line: l.line}
	if rest == "" {
		return t, nil
	}
	for _, q := range quoted {
		if !strings.HasPrefix(rest, q.open) {
			continue
		}
		body := rest[len(q.open):]
		end := strings.Index(body, q.end)
		if end < 0 {
			return t, l.fail(l.line, "unterminated %s", q.open)
		}
		t.kind, t.text = q.kind, body[:end]
		l.advance(len(q.open) + end + len(q.end))
		return t, nil
	}
	t.kind, t.text = classify(rest)
	if t.kind == tokOption {
		l.advance(2)
	}
	l.advance(len(t.text))
	return t, nil
}

// classify returns the token at the beginning of rest. As in packetdrill's lexer, the longest token
// wins.
func classify(rest string) (tokenKind, string) {
	if strings.HasPrefix(rest, "...") {
		return tokEllipsis, rest[:3]
	}
	if strings.HasPrefix(rest, "--") {
		if n := run(rest[2:], wordByte); n > 0 {
			return tokOption, rest[2 : 2+n]
		}
	}
	if n := addressLength(rest); n > 0 {
		return tokAddress, rest[:n]
	}
	sign := 0
	if rest[0] == '-' {
		sign = 1
	}
	whole := run(rest[sign:], digit)
	after := rest[sign+whole:]
	if strings.HasPrefix(after, ".") {
		if n := run(after[1:], digit); n > 0 {
			return tokFloat, rest[:sign+whole+1+n]
		}
	}
	word := run(rest, wordByte)
	switch {
	case whole > 0 && sign+whole >= word:
		return tokInt, rest[:sign+whole]
	case strings.HasPrefix(rest, "0x") && word > 2 && run(rest[2:], hexDigit) == word-2:
		return tokInt, rest[:word]
	case word > 0:
		return tokWord, rest[:word]
	}
	return tokSign, rest[:1]
}

// addressLength returns the length of the dotted quad at the beginning of s.
func addressLength(s string) int {
	n := 0
	for i := range 4 {
		if i > 0 {
			if !strings.HasPrefix(s[n:], ".") {
				return 0
			}
			n++
		}
		k := run(s[n:], digit)
		if k == 0 {
			return 0
		}
		n += k
	}
	return n
}

// run returns the number of bytes at the beginning of s for which is returns true.
func run(s string, is func(byte) bool) int {
	for i := range len(s) {
		if !is(s[i]) {
			return i
		}
	}
	return len(s)
}

func digit(b byte) bool { return b >= '0' && b <= '9' }

func hexDigit(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' }

func wordByte(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' }
