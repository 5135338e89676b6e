package repl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Failure is the document of a command that was to answer with JSON, and failed before it could.
type Failure struct {
	Error  string `json:"error"`
	Status int    `json:"status"` // as of ExitCode
}

// documented marks an error that a JSON document tells of.
type documented struct{ error }

func (d *documented) Unwrap() error { return d.error }

// undocumented reports whether an error is one that no document tells of yet, and that one should.
func undocumented(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil && !errors.Is(err, control.ErrStopped) {
		return false // who ended it knows
	}
	for _, is := range []func(error) bool{is[*documented], is[*told], is[*quitting]} {
		if is(err) {
			return false
		}
	}
	return true
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// AsksJSON reports whether the words of a command have the flag that has it answer with JSON, for
// those who have no command yet.
func AsksJSON(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(strings.Fields(word), jsonWord)
	})
}
