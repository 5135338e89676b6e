package repl

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidepool-net/tidepool/internal/control"
)

func (e *env) jsonFlag(c *cobra.Command) *cobra.Command {
	c.Flags().Bool("json", e.cfg.JSON, "print the answer as JSON")
	return c
}

func (e *env) streamFlag(c *cobra.Command) *cobra.Command {
	c.Flags().Bool("json-stream", false, "print a line of JSON for each event, then the result")
	return c
}

func streams(c *cobra.Command) bool {
	on, err := c.Flags().GetBool("json-stream")
	return err == nil && on
}

// line prints a line of a stream in the format of the HTTP API.
func (e *env) line(event string, data any) error {
	return e.document(struct {
		Event string `json:"event"`
		Data  any    `json:"data"`
	}{event, data})
}

// answer prints an answer as text, or as JSON if the command's --json is set. Commands without this
// flag use the session's format.
func (e *env) answer(c *cobra.Command, a any, text string) error {
	if streams(c) {
		return e.line("result", a)
	}
	if e.json(c) {
		return e.document(a)
	}
	e.screen.data(text)
	return nil
}

func (e *env) json(c *cobra.Command) bool {
	on, err := c.Flags().GetBool("json")
	return on || err != nil && e.cfg.JSON
}

// ask sends a request to the node. Its errors name the command.
func ask[A any](e *env, c *cobra.Command, req control.Request[A]) (A, error) {
	answer, err := control.Ask(c.Context(), e.op, req)
	return answer, failed(c, err)
}

func show[A any](e *env, c *cobra.Command, req control.Request[A], text func(A) string) error {
	answer, err := ask(e, c, req)
	if err != nil {
		return err
	}
	return e.answer(c, answer, text(answer))
}

func (e *env) done(c *cobra.Command, err error) error {
	if err != nil {
		return failed(c, err)
	}
	return e.answer(c, control.Nothing{}, "")
}

func (e *env) document(a any) error {
	if v := reflect.ValueOf(a); v.Kind() == reflect.Slice && v.IsNil() {
		a = []struct{}{} // encodes an empty list, not null
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	e.screen.data(b.String())
	return nil
}

// documentFailure also prints an error as JSON if the command answers in JSON. In a stream of lines
// the error is the last line. It returns err, so that the caller prints the text.
func (e *env) documentFailure(c *cobra.Command, asked bool, err error) error {
	var failure error
	switch {
	case c != nil && streams(c):
		failure = e.line("error", err.Error())
	case asked, c != nil && e.json(c):
		failure = e.document(Failure{Error: err.Error(), Status: ExitCode(err)})
	default:
		return err
	}
	if failure != nil {
		return errors.Join(err, failure)
	}
	return &jsonError{err}
}
