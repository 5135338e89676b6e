package main

import (
	"regexp"
	"slices"
	"strings"
)

// clause is one section of an RFC; an empty section stands for the whole RFC.
type clause struct {
	rfc     int
	section string
}

var (
	// cited matches RFC 5961 §3.2, §4.2 and §5.2; the list may have letters (appendices).
	cited = regexp.MustCompile(`\bRFC ?([0-9]{3,5})\b(?:,? (?:§|appendix )[0-9A-Z]+(?:\.[0-9]+)*` +
		`(?:(?:, | and |, and | to | or )§[0-9A-Z]+(?:\.[0-9]+)*|-§?[0-9]+(?:\.[0-9]+)*)*)?`)
	// numbers matches each section of such a list.
	numbers = regexp.MustCompile(`[0-9A-Z]+(?:\.[0-9]+)*`)
	// spaces, including those around comment markers; they are replaced by one space.
	spaces = regexp.MustCompile(`\s+(?://|\*)?\s*`)
	// citingTest matches a test whose name contains its clause.
	citingTest = regexp.MustCompile(`^(?:Test|Fuzz|Benchmark|Example)RFC([0-9]{3,5})((?:_[0-9]+)*)`)
)

func clauses(text string) []clause {
	text = spaces.ReplaceAllString(text, " ")
	var all []clause
	for _, m := range cited.FindAllStringSubmatch(text, -1) {
		rfc := atoi(m[1])
		_, list, ok := strings.Cut(m[0], "§")
		if !ok {
			_, list, ok = strings.Cut(m[0], "appendix ")
		}
		if !ok {
			all = append(all, clause{rfc: rfc})
			continue
		}
		for _, n := range numbers.FindAllString(strings.NewReplacer(
			" and ", ",", " or ", ",", " to ", ",").Replace(list), -1) {
			all = append(all, clause{rfc, n})
		}
	}
	return all
}

// ofName returns the clause in a test's name.
func ofName(name string) (clause, bool) {
	m := citingTest.FindStringSubmatch(name)
	if m == nil {
		return clause{}, false
	}
	return clause{atoi(m[1]), strings.ReplaceAll(strings.TrimPrefix(m[2], "_"), "_", ".")}, true
}

func atoi(digits string) int {
	n := 0
	for _, d := range digits {
		n = n*10 + int(d-'0')
	}
	return n
}

// covers reports whether a test of c is a test of d: the same section or one below it.
func (c clause) covers(d clause) bool {
	return c.rfc == d.rfc && (d.section == "" || c.section == d.section ||
		strings.HasPrefix(c.section, d.section+"."))
}

// compare orders sections like a table of contents, appendices last.
func compare(a, b clause) int {
	if a.rfc != b.rfc {
		return a.rfc - b.rfc
	}
	x, y := strings.Split(a.section, "."), strings.Split(b.section, ".")
	return slices.CompareFunc(x, y, func(p, q string) int {
		letter := func(s string) bool { return s != "" && s[0] >= 'A' }
		if letter(p) || letter(q) {
			return strings.Compare(p, q)
		}
		return atoi(p) - atoi(q)
	})
}
