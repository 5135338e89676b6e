package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxErrors     = 50 // of one file; what follows is only said to follow
	maxQuotedText = 60 // characters of an offending text in its message
	maxSourceText = 160
)

// Error is one mistake in an experiment file or in a flag that changes one.
type Error struct {
	// File is the name that Parse was given, or the flag.
	File string
	// Line and Col count from 1, Col in characters; Line 0: a flag, or the file as a whole.
	Line, Col int
	// Width is how many characters the offending text has.
	Width int
	// Msg says what is wrong, Want what was expected; it may be empty.
	Msg, Want string
	// Source is the whole line, or what the flag was given; it may be empty.
	Source string
}

// Error returns the place and the message, then the line with carets under the offending text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	b.WriteString(": " + e.Msg)
	if e.Want != "" {
		b.WriteString("; expected " + e.Want)
	}
	if e.Source != "" && e.Col > 0 {
		b.WriteString(e.excerpt())
	}
	return b.String()
}

// excerpt returns the line and the carets. A line that is longer than a screen is cut to what
// is around them.
func (e *Error) excerpt() string {
	line := []rune(visible(e.Source))
	at, cutFront := min(e.Col-1, len(line)), 0
	if at > maxSourceText/2 && len(line) > maxSourceText {
		cutFront = at - maxSourceText/2
	}
	line, at = line[cutFront:], at-cutFront
	if len(line) > maxSourceText {
		line = line[:maxSourceText]
	}
	carets := max(1, min(e.Width, len(line)-at))
	return "\n    " + string(line) + "\n    " + strings.Repeat(" ", at) + strings.Repeat("^",
		carets)
}

// visible returns s with everything that a terminal would obey turned into something that it
// shows: carets stand under the text then.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) ||
			unicode.Is(unicode.Zp, r):
			return utf8.RuneError
		}
		return r
	}, s)
}

// Errors are the mistakes of a file and of the flags that change it, in the order of their
// places.
type Errors []*Error

// Error returns all of them, one after the other.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap gives the single errors to errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// report collects mistakes, each once.
type report struct {
	errs Errors
	seen map[Error]bool
	more bool
	// cell are the swept values of what is being decoded: a mistake that only they make is
	// said to be theirs.
	cell []swept
	// moot are the expectations that have nothing to be about since a flag changed the file.
	moot []*node
}

// swept is a value that a cell has of what is swept.
type swept struct {
	Setting
	at place
}

func (r *report) add(p place, msg, want string) {
	e := Error{File: p.src.name, Col: p.col, Width: p.width, Msg: msg, Want: want}
	if p.src.flag {
		e.Source = p.src.lines[0]
	} else if e.Line = p.line; p.line >= 1 && p.line <= len(p.src.lines) {
		e.Source = p.src.lines[p.line-1]
	}
	if r.seen[e] {
		return
	}
	if len(r.errs) == maxErrors {
		r.more = true
		return
	}
	if r.seen == nil {
		r.seen = map[Error]bool{}
	}
	r.seen[e] = true
	e.Msg += r.where(p)
	r.errs = append(r.errs, &e)
}

// where names the cell, unless what is wrong stands in a value that is swept.
func (r *report) where(p place) string {
	var b strings.Builder
	for i, s := range r.cell {
		if s.at == p {
			return ""
		}
		b.WriteString([]string{", where ", " and "}[min(i, 1)] + s.Key + " is " + s.Value)
	}
	return b.String()
}

// err returns what was found, those in files first, or nil.
func (r *report) err() error {
	if len(r.errs) == 0 {
		return nil
	}
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(min(b.Line, 1), min(a.Line, 1)), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Col, b.Col))
	})
	if !r.more {
		return r.errs
	}
	msg := fmt.Sprintf("more mistakes follow; these are the first %d", maxErrors)
	return append(slices.Clone(r.errs), &Error{File: r.errs[0].File, Msg: msg})
}

// quote returns text for a message: quoted, escaped and not too long.
func quote(text string) string {
	if runes := []rune(text); len(runes) > maxQuotedText {
		text = string(runes[:maxQuotedText]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// oneOf lists words for a message.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
