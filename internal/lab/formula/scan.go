package formula

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

type scanner struct {
	text string
	at   int
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.at:])
		if !unicode.IsSpace(r) {
			return
		}
		s.at += n
	}
}

// peek reports whether prefix comes next, after spaces.
func (s *scanner) peek(prefix string) bool {
	s.space()
	return strings.HasPrefix(s.text[s.at:], prefix)
}

func (s *scanner) take(prefix string) bool {
	if !s.peek(prefix) {
		return false
	}
	s.at += len(prefix)
	return true
}

// first consumes the first of the prefixes that comes next, and returns it.
func (s *scanner) first(prefixes []string) string {
	for _, p := range prefixes {
		if s.take(p) {
			return p
		}
	}
	return ""
}

func isNamePart(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

func (s *scanner) name() string {
	s.space()
	from := s.at
	for s.at < len(s.text) {
		r, n := utf8.DecodeRuneInString(s.text[s.at:])
		next, _ := utf8.DecodeRuneInString(s.text[s.at+n:])
		dot := r == '.' && s.at > from && unicode.IsLetter(next)
		if !isNamePart(r) && !dot || s.at == from && unicode.IsDigit(r) {
			break
		}
		s.at += n
	}
	return s.text[from:s.at]
}

func (s *scanner) number() string {
	s.space()
	rest := s.text[s.at:]
	n := result.NumberLength(rest)
	if n == 0 {
		return ""
	}
	end := n
	for end < len(rest) {
		r, size := utf8.DecodeRuneInString(rest[end:])
		if !unicode.IsLetter(r) && r != '%' {
			break
		}
		end += size
	}
	// The slash in a rate's unit is not a division.
	if tail := rest[end:]; end > n && strings.HasPrefix(tail, "/s") {
		after, _ := utf8.DecodeRuneInString(tail[2:])
		if _, known := result.Measures[rest[n:end]+"/s"]; known && !isNamePart(after) {
			end += len("/s")
		}
	}
	s.at += end
	return rest[:end]
}

// raw consumes the text up to a comma or a closing bracket that is outside of nested brackets and
// quotes. It returns the text without quotes. closed is false if the formula ends before that.
func (s *scanner) raw(closing byte) (text string, from int, closed bool) {
	s.space()
	from = s.at
	if s.at < len(s.text) && s.text[s.at] == '"' {
		end := strings.IndexByte(s.text[s.at+1:], '"')
		if end < 0 {
			s.at = len(s.text)
			return "", from, false
		}
		text = s.text[s.at+1 : s.at+1+end]
		s.at += end + 2
		s.space()
		return text, from, s.at < len(s.text)
	}
	depth := 0
	for ; s.at < len(s.text); s.at++ {
		c := s.text[s.at]
		switch {
		case depth == 0 && (c == ',' || c == closing):
			return strings.TrimSpace(s.text[from:s.at]), from, true
		case c == '(' || c == '[' || c == '{':
			depth++
		case c == ')' || c == ']' || c == '}':
			depth--
		}
	}
	return "", from, false
}
