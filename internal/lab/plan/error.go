package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

const maxErrors = 50

// Error is one error in an experiment file or in a flag that changes it.
type Error = diagnostic.Error

// Errors are the errors in a file and in the flags that change the file, sorted by position.
type Errors = diagnostic.Errors //nolint:errname // a list of errors

// report collects errors, each once.
type report struct {
	errs Errors
	seen map[Error]bool
	more bool
	// added counts the errors, repeated ones included.
	added int
	// cell has the swept values of the cell that is being decoded. An error that occurs only in
	// this cell names them.
	cell []swept
	// inapplicable are the expectations that do not apply after a flag changed the file.
	inapplicable []*node
}

// swept is a cell's value of a swept variable.
type swept struct {
	Setting
	at place
}

func (r *report) add(p place, msg, want string) {
	r.added++
	e := Error{File: p.src.name, Col: p.col, Msg: msg, Want: want}
	if p.src.flag {
		e.Source = p.src.lines[0]
	} else if e.Line = p.line; p.line >= 1 && p.line <= len(p.src.lines) {
		e.Source = p.src.lines[p.line-1]
	}
	if line := []rune(e.Source); p.col >= 1 && p.col <= len(line) {
		e.Text = string(line[p.col-1 : min(p.col-1+p.width, len(line))])
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

func (r *report) bad(n *node, msg, want string) { r.add(n.place, msg, want) }

func (r *report) unknownKeys(n *node, what string, known []string) {
	for _, p := range n.pairs {
		if !slices.Contains(known, p.key.text) {
			r.unknownKey(p.key, what, known)
		}
	}
}

func (r *report) unknownKey(n *node, what string, known []string) {
	near := diagnostic.DidYouMean(n.text, known)
	want := ""
	if near == "" {
		want = diagnostic.OneOf(known)
	}
	r.add(n.place, diagnostic.Quote(n.text)+" is not a key of "+what+near, want)
}

// where returns the values of the cell, or "" if the error is in one of these values.
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
	msg := fmt.Sprintf("more errors follow; these are the first %d", maxErrors)
	return append(slices.Clone(r.errs), &Error{File: r.errs[0].File, Msg: msg})
}

// ErrorAt returns an error that was found after the file was read. It points to a key of a flow, or
// to the flow if it does not have the key. A negative flow stands for all flows.
func (f *File) ErrorAt(cell *Cell, flow int, key, msg, want string) error {
	r := &report{}
	at := f.root.get("flows")
	if at == nil {
		at = f.root
	}
	if flow >= 0 && flow < len(cell.Flows) && cell.Flows[flow].Item < len(at.items) {
		at = at.items[cell.Flows[flow].Item]
		if n := at.get(key); n != nil {
			at = n
		}
	}
	for _, s := range cell.Set {
		r.cell = append(r.cell, swept{Setting: s})
	}
	r.add(at.place, msg, want)
	return r.err()
}
