package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/repl"
)

// failure is what a command answers with that was to answer with JSON, and failed before it could.
type failure struct {
	repl.Failure
	Problems []problem `json:"problems,omitempty"` // in files
}

// answered marks an error that an answer in JSON tells of.
type answered struct{ error }

func (a answered) Unwrap() error { return a.error }

// answerFailure prints an error as JSON, unless an answer tells of it or there is nothing to tell.
func answerFailure(out io.Writer, err error) error {
	if _, done := errors.AsType[answered](err); done || explain(err) == "" {
		return err
	}
	f := failure{Failure: repl.Failure{Error: named(err.Error()), Status: exitCode(err)}}
	if mistakes, ok := errors.AsType[lnx.Errors](err); ok {
		f.Problems = problems(mistakes)
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if failed := enc.Encode(f); failed != nil {
		return errors.Join(err, failed)
	}
	return answered{err}
}

// problems are mistakes as JSON has them.
func problems(mistakes lnx.Errors) []problem {
	list := make([]problem, 0, len(mistakes))
	for _, e := range mistakes {
		list = append(list, problem{
			File: e.File, Line: e.Line, Col: e.Col, Text: e.Text, Message: e.Msg, Want: e.Want,
			Note: e.Note,
		})
	}
	return list
}
