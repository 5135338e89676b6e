package lnx

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// maxErrors limits the errors of one file. Beyond it, one more error says that there are others.
const maxErrors = 100

// Error is one error in a file, or a remark on a valid line.
type Error = diagnostic.Error

// Errors are the errors of a file or a network, sorted by position.
type Errors = diagnostic.Errors //nolint:errname // the type is a list of errors

// report collects the errors of one file.
type report struct {
	file  string
	lines []string
	errs  Errors
	more  bool
}

// add records an error. The arguments text and want may be empty.
func (r *report) add(pos Pos, text, msg, want string) {
	r.put(&Error{Line: pos.Line, Col: pos.Col, Text: text, Msg: msg, Want: want})
}

func (r *report) note(pos Pos, text, msg string) {
	r.put(&Error{Line: pos.Line, Col: pos.Col, Text: text, Msg: msg, Note: true})
}

// bad records that a word is not the expected value.
func (r *report) bad(w Word, what, want string) {
	r.add(w.Pos, w.Text, diagnostic.Quote(w.Text)+" is "+what, want)
}

// words checks that the line has from least to most words. Otherwise it records the first missing
// or extra word.
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

// fixed reports whether word i of the line is the keyword that the directive requires there. It
// ignores a line that is too short, because words reports that.
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

// sorted returns the errors in file order.
func (r *report) sorted() Errors {
	r.errs.Sort()
	if r.more {
		msg := fmt.Sprintf("more errors follow; these are the first %d", maxErrors)
		last := r.errs[len(r.errs)-1] // its position keeps the new error last in a later sort
		return append(r.errs, &Error{File: r.file, Line: last.Line, Col: last.Col, Msg: msg})
	}
	return r.errs
}
