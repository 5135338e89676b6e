package formula

import (
	"fmt"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Error is an error in a formula, with its position.
type Error struct {
	// Source is the whole formula. At is the offset of the wrong part, and Width is its length,
	// both in bytes.
	Source    string
	At, Width int
	// Msg says what is wrong. Want says what was expected; it may be empty.
	Msg, Want string
}

// Column returns the position in characters, from 1.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Source[:e.At]) + 1 }

// Message returns the error without the formula.
func (e *Error) Message() string {
	if e.Want == "" {
		return e.Msg
	}
	return e.Msg + "; expected " + e.Want
}

func (e *Error) Error() string {
	marked := e.Source[e.At:min(len(e.Source), e.At+e.Width)]
	return fmt.Sprintf("%d: %s", e.Column(), e.Message()) +
		diagnostic.Excerpt(e.Source, e.Column(), utf8.RuneCountInString(marked))
}
