package formula

import (
	"fmt"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Error is an error in a formula, with its place.
type Error struct {
	// Source is the whole formula, At where the wrong part begins and Width how long it is,
	// both in bytes.
	Source    string
	At, Width int
	// Msg says what is wrong, Want what was expected; it may be empty.
	Msg, Want string
}

// Column counts characters from 1.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Source[:e.At]) + 1 }

// Message is the error without the formula.
func (e *Error) Message() string {
	if e.Want == "" {
		return e.Msg
	}
	return e.Msg + "; expected " + e.Want
}

// Error returns the message, then the formula with carets under what is wrong.
func (e *Error) Error() string {
	marked := e.Source[e.At:min(len(e.Source), e.At+e.Width)]
	return fmt.Sprintf("%d: %s", e.Column(), e.Message()) +
		diagnostic.Excerpt(e.Source, e.Column(), utf8.RuneCountInString(marked))
}
