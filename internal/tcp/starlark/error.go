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

// Error is an error in a script, with its position.
type Error struct {
	File         string
	Line, Column int // from 1; 0: the whole file
	// What describes the error and the expected value.
	What string
	// Call is the function that was called, and After the time since the connection's first event;
	// both are empty while the file is compiled.
	Call  string
	After time.Duration
	// Param is the parameter with an invalid value; empty for other errors.
	Param string
	// Trace is the call stack, outermost call first: file, line, column and function name. It is
	// empty for compile errors.
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

// maxErrors limits the number of errors reported for one file.
const maxErrors = 10

// mistakes converts errors of the parser, the resolver or the interpreter to Errors.
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

// meant suggests a known name that is similar to an undefined one.
func meant(what string) string {
	const short = 3 // too short for a suggestion
	name, ok := strings.CutPrefix(what, "undefined: ")
	// The resolver already has a suggestion.
	if !ok || len(name) <= short || strings.Contains(name, " ") {
		return ""
	}
	return diagnostic.DidYouMean(name, append(predeclared.Keys(), starlark.Universe.Keys()...))
}

func at(pos syntax.Position, what string) *Error {
	return &Error{
		File: pos.Filename(), Line: int(pos.Line), Column: int(pos.Col), What: what,
	}
}

// raised converts an error of running Starlark code.
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
		if f.Pos.Line == 0 { // a builtin, which has no position in the file
			continue
		}
		e.File, e.Line, e.Column = f.Pos.Filename(), int(f.Pos.Line), int(f.Pos.Col)
		e.Trace = append(e.Trace, fmt.Sprintf("%s: in %s", f.Pos, f.Name))
	}
	return e
}
