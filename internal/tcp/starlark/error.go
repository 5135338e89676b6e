package starlark

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Error is a script's mistake and where it is.
type Error struct {
	File         string
	Line, Column int // from 1; 0: the file as a whole
	// What says what happened and what was expected.
	What string
	// Call is the function that was called, and After how long after the connection's first
	// event; empty while the file was being read.
	Call  string
	After time.Duration
	// Param is the parameter whose given value is wrong; empty: it is about the script.
	Param string
	// Trace are the calls that led there, the outermost first, each with file, line, column
	// and the function's name; empty for one that does not compile.
	Trace []string
}

// Error returns file, line, column and message, followed by the call stack.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.What)
	if e.Call != "" {
		fmt.Fprintf(&b, "\n  in %s, %.6f s after the connection's first event", e.Call,
			e.After.Seconds())
	}
	for _, t := range e.Trace {
		b.WriteString("\n  " + t)
	}
	return b.String()
}

// maxErrors bounds the errors that are reported for one file.
const maxErrors = 10

// mistakes turns what the parser, the resolver or the interpreter says about a file into Errors.
func mistakes(file string, err error) error {
	var syntactic syntax.Error
	var unresolved resolve.ErrorList
	switch {
	case errors.As(err, &syntactic):
		return at(syntactic.Pos, syntactic.Msg)
	case errors.As(err, &unresolved):
		var all []error
		for i, e := range unresolved {
			if i == maxErrors {
				all = append(all, fmt.Errorf("and %d more", len(unresolved)-i))
				break
			}
			all = append(all, at(e.Pos, e.Msg+meant(e.Msg)))
		}
		return errors.Join(all...)
	}
	return raised(file, err)
}

// meant is which of the names that scripts have was meant by an undefined one.
func meant(what string) string {
	const short = 3 // letters, of which anything is near
	name, ok := strings.CutPrefix(what, "undefined: ")
	if !ok || len(name) <= short || strings.Contains(name, " ") { // the resolver has found one
		return ""
	}
	return diagnostic.DidYouMean(name, append(predeclared.Keys(), starlark.Universe.Keys()...))
}

// at is a mistake at a place in the source.
func at(pos syntax.Position, what string) *Error {
	return &Error{
		File: pos.Filename(), Line: int(pos.Line), Column: int(pos.Col), What: what,
	}
}

// raised is what went wrong while Starlark code ran.
func raised(file string, err error) *Error {
	e := &Error{File: file, What: err.Error()}
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return e
	}
	e.What = strings.TrimPrefix(eval.Msg, "Starlark computation cancelled: ")
	if own, ok := errors.AsType[*Error](err); ok {
		e.What, e.Param = own.What, own.Param
	}
	for _, f := range eval.CallStack {
		if f.Pos.Line == 0 { // a builtin, which has no place in the file
			continue
		}
		e.File, e.Line, e.Column = f.Pos.Filename(), int(f.Pos.Line), int(f.Pos.Col)
		e.Trace = append(e.Trace, fmt.Sprintf("%s: in %s", f.Pos, f.Name))
	}
	return e
}
