package repl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Failure is the JSON output of a command that failed before it printed a result.
type Failure struct {
	Error  string `json:"error"`
	Status int    `json:"status"` // exit status, as ExitCode returns it
}

// jsonError marks an error that was printed as JSON.
type jsonError struct{ error }

func (d *jsonError) Unwrap() error { return d.error }

// needsJSON reports whether an error must still be printed as JSON.
func needsJSON(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil && !errors.Is(err, control.ErrStopped) {
		return false // the user stopped the command
	}
	for _, is := range []func(error) bool{is[*jsonError], is[*printedError], is[*quitError]} {
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

// AsksJSON reports whether the words of a command contain --json. It is for callers that have not
// parsed the command yet.
func AsksJSON(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.Contains(strings.Fields(word), jsonWord)
	})
}
