package lnx

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const (
	maxErrors     = 100 // of one file or network; what follows is only said to follow
	maxQuotedText = 60  // characters of an offending word in its message
)

// Error is one mistake in a file, or a note on it.
type Error struct {
	// File is the name that Parse was given.
	File string
	// Line and Col count from 1; Line 0 is the file as a whole.
	Line, Col int
	// Text is the offending text, empty where something is missing.
	Text string
	// Msg says what is wrong.
	Msg string
	// Want says what was expected; it may be empty.
	Want string
	// Source is the whole line, or empty.
	Source string
	// Note is set on a remark that is no mistake.
	Note bool
}

// Error returns the place and the message, then the line with a caret under
// the offending text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Col)
	}
	b.WriteString(": ")
	if e.Note {
		b.WriteString("note: ")
	}
	b.WriteString(e.Msg)
	if e.Want != "" {
		b.WriteString("; expected " + e.Want)
	}
	if e.Source != "" {
		b.WriteString("\n    " + visible(e.Source) + "\n    " + e.caret())
	}
	return b.String()
}

// caret returns the underline. It repeats the line's tabs, so that it stands
// under the text however wide a tab is shown.
func (e *Error) caret() string {
	var b strings.Builder
	col := 1
	for _, r := range e.Source {
		if col >= e.Col {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
		col++
	}
	b.WriteString(strings.Repeat(" ", max(0, e.Col-col)))
	b.WriteString(strings.Repeat("^", max(1, len([]rune(e.Text)))))
	return b.String()
}

// visible returns s with everything that a terminal would obey turned into the
// replacement character.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return replacement
		}
		return r
	}, s)
}

// Errors are the mistakes of a file or a network, in the order of their places.
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

// Err returns the mistakes without the notes, nil if there are none.
func (e Errors) Err() error {
	bad := slices.DeleteFunc(slices.Clone(e), func(err *Error) bool { return err.Note })
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// report collects the errors of one file.
type report struct {
	file  string
	lines []string
	errs  Errors
	more  bool
}

// add records a mistake. Text may be empty; want too.
func (r *report) add(pos Pos, text, msg, want string) {
	r.put(&Error{Line: pos.Line, Col: pos.Col, Text: text, Msg: msg, Want: want})
}

// note records a remark.
func (r *report) note(pos Pos, text, msg string) {
	r.put(&Error{Line: pos.Line, Col: pos.Col, Text: text, Msg: msg, Note: true})
}

func (r *report) put(e *Error) {
	if len(r.errs) == maxErrors {
		r.more = true
		return
	}
	e.File = r.file
	if e.Line > 0 && e.Line <= len(r.lines) {
		e.Source = r.lines[e.Line-1]
	}
	r.errs = append(r.errs, e)
}

// sorted returns what was recorded, in the order of the file.
func (r *report) sorted() Errors {
	slices.SortStableFunc(r.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if r.more {
		msg := fmt.Sprintf("more mistakes follow; these are the first %d", maxErrors)
		return append(r.errs, &Error{File: r.file, Msg: msg})
	}
	return r.errs
}

// quote returns text for a message: quoted, escaped and not too long.
func quote(text string) string {
	if runes := []rune(text); len(runes) > maxQuotedText {
		text = string(runes[:maxQuotedText]) + "…"
	}
	return fmt.Sprintf("%q", text)
}
