package lnx

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// maxErrors are those of one file or network; what follows is only said to follow.
const maxErrors = 100

// Error is one mistake in a file, or a note on it.
type Error = diagnostic.Error

// Errors are the mistakes of a file or a network, in the order of their places.
type Errors = diagnostic.Errors //nolint:errname // they are many

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

// bad records that a word is not what was expected.
func (r *report) bad(w Word, what, want string) {
	r.add(w.Pos, w.Text, diagnostic.Quote(w.Text)+" is "+what, want)
}

// words reports whether the line has from least to most words, and records the
// first that is missing or too many.
func (r *report) words(l line, least, most int, usage string) bool {
	switch n := len(l.words); {
	case n < least:
		r.add(l.end, "", "the line is incomplete", usage)
	case n > most:
		extra := l.words[most]
		r.add(extra.Pos, extra.Text, diagnostic.Quote(extra.Text)+" is not expected here", usage)
	default:
		return true
	}
	return false
}

// fixed reports whether the line's word i is the one that the form has there.
// A line that ends before is left to words.
func (r *report) fixed(l line, i int, want, usage string) bool {
	if i >= len(l.words) || l.words[i].Text == want {
		return true
	}
	r.bad(l.words[i], "not the keyword "+diagnostic.Quote(want), usage)
	return false
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
	r.errs.Sort()
	if r.more {
		msg := fmt.Sprintf("more errors follow; these are the first %d", maxErrors)
		last := r.errs[len(r.errs)-1] // behind it this stays, whatever is put in order with them
		return append(r.errs, &Error{File: r.file, Line: last.Line, Col: last.Col, Msg: msg})
	}
	return r.errs
}
