package lnx

import (
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// detect tells the grammar from the content: a file with a directive is new, but that
// port forwards are of every grammar; else its first line decides. Four words with a colon in
// the first are a link of 2012, a colon alone is 2013 to 2017, a host and a port 2018 to
// 2022. Any other file counts as new, because the errors of that grammar suggest most.
func detect(lines []line) Grammar {
	lines = slices.DeleteFunc(slices.Clone(lines), isForward)
	for _, l := range lines {
		if findDirective(l.keyword().Text) != nil {
			return GrammarNew
		}
	}
	if len(lines) == 0 {
		return GrammarNew
	}
	words := lines[0].words
	switch {
	case diagnostic.DidYouMean(words[0].Text, directiveNames()) != "":
		return GrammarNew
	case strings.Contains(words[0].Text, ":"):
		if len(words) >= 3 {
			return Grammar2012
		}
		return Grammar2013
	case len(words) == 2, len(words) == 4, len(words) > 1 && isNumber(words[1].Text):
		return Grammar2018
	}
	return GrammarNew
}

// isNumber reports whether s is all digits.
func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
