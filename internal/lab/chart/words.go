package chart

import (
	"strings"
	"unicode"
)

// Clean makes a text from a user safe for a figure. It limits the number of characters, and
// replaces invisible characters and characters that change the direction of writing.
func Clean(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	n := 0
	for _, r := range s {
		if n == most-1 && len([]rune(s)) > most {
			b.WriteRune('…')
			break
		}
		if n == most {
			break
		}
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			r = ' '
		case !unicode.IsPrint(r):
			r = '\uFFFD'
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

func (f Font) fit(s string, room float64) string {
	for most := 80; ; most -= 2 {
		if c := Clean(s, most); most < 4 || f.width(c, textSize, false) <= room {
			return c
		}
	}
}

// wrap breaks a text into lines that fit. It does not break a word that is wider than a line.
func (f Font) wrap(s string, size float64, bold bool, room float64) []string {
	var lines []string
	for word := range strings.FieldsSeq(s) {
		if n := len(lines); n > 0 && f.width(lines[n-1]+" "+word, size, bold) <= room {
			lines[n-1] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
