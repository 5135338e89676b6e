// Package diagnostic formats errors for the author of a file or a command: the position, the
// expected value, the line with carets under the error, and a suggestion for a misspelled word.
package diagnostic

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxQuotedText = 60  // maximum length in characters of a quoted text in a message
	maxSourceText = 160 // maximum length in characters of a line
)

// Error is one error in a file or a flag, or a note on it.
type Error struct {
	// File is the file's name, or the flag.
	File string `json:"file"`
	// Line and Col count from 1, Col in characters. Line is 0 for a flag or for the whole file; Col
	// is 0 for the whole line.
	Line int `json:"line,omitempty"`
	Col  int `json:"col,omitempty"`
	// Text is the wrong text; empty if something is missing.
	Text string `json:"text,omitempty"`
	// Msg says what is wrong. Want says what was expected; it may be empty.
	Msg  string `json:"message"`
	Want string `json:"want,omitempty"`
	// Source is the whole line, or the flag's value; it may be empty.
	Source string `json:"source,omitempty"`
	// Note marks a remark that is not an error.
	Note bool `json:"note,omitempty"`
}

// Error returns the position and the message, then the line with carets under the wrong text.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
		if e.Col > 0 {
			fmt.Fprintf(&b, ":%d", e.Col)
		}
	}
	b.WriteString(": ")
	if e.Note {
		b.WriteString("note: ")
	}
	b.WriteString(e.Msg)
	if e.Want != "" {
		b.WriteString("; expected " + e.Want)
	}
	if e.Source != "" && e.Col > 0 {
		b.WriteString(Excerpt(e.Source, e.Col, utf8.RuneCountInString(e.Text)))
	}
	return b.String()
}

// Excerpt returns two lines for the end of a message: source, and carets under width characters
// from col on, which counts from 1. The second line repeats the tabs of the first, so that the
// carets stand under the text however wide a tab is shown. A long source is cut to the part
// around the carets.
func Excerpt(source string, col, width int) string {
	line := []rune(Visible(source))
	at := min(col-1, len(line))
	if cut := at - maxSourceText/2; cut > 0 && len(line) > maxSourceText {
		line, at = line[cut:], at-cut
	}
	if len(line) > maxSourceText {
		line = line[:maxSourceText]
	}
	under := slices.Clone(line[:at])
	for i, r := range under {
		if r != '\t' {
			under[i] = ' '
		}
	}
	carets := max(1, min(width, len(line)-at))
	return "\n    " + string(line) + "\n    " + string(under) + strings.Repeat("^", carets)
}

// Visible replaces control characters in s, except tabs, by visible ones, so that the carets are
// aligned.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		obeyed := unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
		if obeyed && r != '\t' {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Quote returns text quoted, escaped and shortened for a message.
func Quote(text string) string {
	if runes := []rune(text); len(runes) > maxQuotedText {
		text = string(runes[:maxQuotedText]) + "…"
	}
	return fmt.Sprintf("%q", text)
}

// ShellWord quotes a word for a POSIX shell if necessary.
func ShellWord(word string) string {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_@%+=:,./-", r)
	}
	if word != "" && strings.IndexFunc(word, special) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Errors are the errors of a file and its related files, sorted by position.
type Errors []*Error

// Error returns all errors.
func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "\n")
}

// Sort sorts the errors by position.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
}

// Unwrap returns the single errors, for errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}

// Err returns the errors without the notes; nil if there are only notes.
func (e Errors) Err() error {
	bad := slices.DeleteFunc(slices.Clone(e), func(err *Error) bool { return err.Note })
	if len(bad) == 0 {
		return nil
	}
	return bad
}
