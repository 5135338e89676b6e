package lnx

import (
	"bytes"
	"fmt"
	"strings"
)

// These are the limits of a file. Usual files have up to forty lines. The limits are far above that
// and reject a wrong file quickly.
const (
	maxFileBytes = 1 << 20
	maxLines     = 10_000
	maxLineChars = 500
)

// replacement is what Go's range yields for bytes that are not UTF-8.
const replacement = '�'

// Word is a run of characters without spaces and tabs, with its position.
type Word struct {
	Text string
	Pos  Pos
}

// line is a line with at least one word.
type line struct {
	words []Word
	end   Pos // position after the last word
}

// keyword returns the line's first word.
func (l line) keyword() Word { return l.words[0] }

// lex splits the text into lines of words, without comments and blank lines. It reports lines that
// are not text and returns them separately. If the file is binary or too long, ok is false.
func (r *report) lex(text []byte) (out, broken []line, ok bool) {
	if len(text) > maxFileBytes {
		msg := fmt.Sprintf("the file has %d bytes", len(text))
		r.add(Pos{}, "", msg, fmt.Sprintf("at most %d", maxFileBytes))
		return nil, nil, false
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // Windows writes a byte order mark
	source := strings.ReplaceAll(string(text), "\r\n", "\n")
	source = strings.ReplaceAll(source, "\r", "\n")
	lines := strings.Split(source, "\n")
	if len(lines) > maxLines {
		msg := fmt.Sprintf("the file has %d lines", len(lines))
		r.add(Pos{}, "", msg, fmt.Sprintf("at most %d", maxLines))
		return nil, nil, false
	}
	r.lines = lines
	if i := strings.IndexByte(source, 0); i >= 0 {
		r.reportBinary(source, i)
		return nil, nil, false
	}
	for i, s := range lines {
		isText := r.isText(i+1, s)
		l := cut(i+1, s)
		switch {
		case len(l.words) == 0:
		case isText:
			out = append(out, l)
		default:
			broken = append(broken, l)
		}
	}
	return out, broken, true
}

// reportBinary reports the NUL byte at offset i as the only error, because errors in the lines of a
// binary file do not help.
func (r *report) reportBinary(source string, i int) {
	pos := Pos{Line: 1 + strings.Count(source[:i], "\n")}
	pos.Col = 1 + len([]rune(source[strings.LastIndexByte(source[:i], '\n')+1:i]))
	r.lines = nil
	r.add(pos, "\x00", "a NUL byte: this is a binary file", "UTF-8 text")
}

// isText reports whether line n is valid text: short enough, in UTF-8 and free of control
// characters. It records an error if not.
func (r *report) isText(n int, s string) bool {
	if chars := len([]rune(s)); chars > maxLineChars {
		r.lines[n-1] = "" // the line is too long to show
		msg := fmt.Sprintf("the line has %d characters", chars)
		r.add(Pos{n, maxLineChars + 1}, "", msg, fmt.Sprintf("at most %d", maxLineChars))
		return false
	}
	col := 0
	for i, c := range s {
		col++
		switch {
		case c == replacement && !strings.HasPrefix(s[i:], string(replacement)):
			msg := fmt.Sprintf("byte 0x%02x is not UTF-8", s[i])
			r.add(Pos{n, col}, s[i:i+1], msg, "UTF-8 text")
			return false
		case isControl(c):
			r.add(Pos{n, col}, string(c), fmt.Sprintf("control character %U", c),
				"printable text, blanks and tabs")
			return false
		}
	}
	return true
}

func isControl(r rune) bool {
	return r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0)
}

// cut splits line n at spaces and tabs. It stops at a comment.
func cut(n int, s string) line {
	var l line
	start, startCol, col := -1, 0, 0
	flush := func(end int) {
		if start >= 0 {
			l.words = append(l.words, Word{s[start:end], Pos{n, startCol}})
			l.end = Pos{n, col}
			start = -1
		}
	}
	for i, r := range s {
		col++
		switch {
		case r == '#':
			flush(i)
			return l
		case r == ' ' || r == '\t':
			flush(i)
		case start < 0:
			start, startCol = i, col
		}
	}
	col++
	flush(len(s))
	return l
}
