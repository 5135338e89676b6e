package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/repl"
)

// failure is the JSON output of a command that failed before it printed a result.
type failure struct {
	repl.Failure
	Problems lnx.Errors `json:"problems,omitempty"` // errors in files
}

// jsonError marks an error that was already printed as JSON.
type jsonError struct{ error }

func (a jsonError) Unwrap() error { return a.error }

// answerFailure prints a command's error as JSON, unless it was already printed or has no text.
func answerFailure(c *cobra.Command, out io.Writer, err error) error {
	if _, done := errors.AsType[jsonError](err); done || explain(c, err) == "" {
		return err
	}
	f := failure{Failure: repl.Failure{Error: named(err.Error()), Status: exitCode(err)}}
	f.Problems, _ = errors.AsType[lnx.Errors](err) // nil for other errors
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if failed := enc.Encode(f); failed != nil {
		return errors.Join(err, failed)
	}
	return jsonError{err}
}
