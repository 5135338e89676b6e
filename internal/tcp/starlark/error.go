package starlark

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Error is an error in a script, with its position.
type Error struct {
	File         string
	Line, Column int // counted from 1; 0: the error is in the whole file
	// What describes the error and the expected value.
	What string
	// Call is the function that was called, and After the time since the connection's first event.
	// Both are zero while the file is compiled.
	Call  string
	After time.Duration
	// Param is the parameter with an invalid value; empty for other errors.
	Param string
	// Trace is the call stack, with the outermost call first. Each entry has file, line, column and
	// function name. Compile errors have no trace.
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

// scriptErrors converts errors of the parser, the resolver or the interpreter to Errors.
func scriptErrors(file string, src []byte, err error) error {
	if found, ok := errors.AsType[syntax.Error](err); ok {
		e, lines := at(found.Pos, found.Msg), strings.Split(string(src), "\n")
		end := strings.HasPrefix(e.What, "got newline") ||
			strings.HasPrefix(e.What, "got end of file")
		for end && e.Column == 1 && e.Line > 1 && e.Line <= len(lines) { // after the newline
			e.Line--
			e.Column = utf8.RuneCountInString(strings.TrimSuffix(lines[e.Line-1], "\r")) + 1
		}
		return e
	}
	if found, ok := errors.AsType[resolve.ErrorList](err); ok {
		var all []error
		for _, e := range found[:min(len(found), maxErrors)] {
			all = append(all, at(e.Pos, e.Msg+suggestion(e.Msg)))
		}
		if more := len(found) - len(all); more > 0 {
			all = append(all, fmt.Errorf("and %d more", more))
		}
		return errors.Join(all...)
	}
	return raised(file, err)
}

// suggestion suggests a known name that is similar to an undefined one.
func suggestion(what string) string {
	const short = 3 // names this short get no suggestion
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
