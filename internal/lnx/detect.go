package lnx

import (
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// detect finds the grammar from the content. A file with a directive is of the new grammar; port
// forwards do not count, because every grammar has them. Otherwise the first line decides. If its
// first word resembles a directive, the grammar is the new one. If that word has a colon, a line of
// three or more words is of 2012, and a shorter one of 2013 to 2017. A host and a port are 2018 to
// 2022. All other files count as new, because errors in that grammar help most.
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

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
