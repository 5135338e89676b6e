package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab"
)

// markdownHead is the top of the page that `make lab` writes.
const markdownHead = "# Results of the laboratory's experiments\n\n" +
	"Each preset that has expectations, with its results. `make lab` writes this page, and\n" +
	"`node lab check` prints the same to a terminal. Results do not depend on the machine.\n" +
	"Each check names its source and the reason for its tolerance. Where a published number\n" +
	"differs from theory, the table has both, and why. Regression values are in separate\n" +
	"tables: they compare with earlier results of this program, and prove nothing.\n" +
	"[ns3.md](ns3.md) compares 28 scenarios with ns-3, and explains each difference above 10 %.\n\n"

// writeMarkdown writes an experiment's results as a section of the page.
func writeMarkdown(w io.Writer, j *lab.Judged) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s.\n\n", j.Name, markdownText(j.About))
	var checks, own []*lab.Verdict
	for i := range j.Verdicts {
		if v := &j.Verdicts[i]; v.Own() {
			own = append(own, v)
		} else {
			checks = append(checks, v)
		}
	}
	markdownTable(&b, checks, "holds", "**fails**")
	if len(own) > 0 {
		b.WriteString("Regression values:\n\n")
		markdownTable(&b, own, "unchanged", "**changed**")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownTable writes verdicts as a table. If several rows belong to one expectation, only the
// first contains the source and the reason for the tolerance.
func markdownTable(b *strings.Builder, list []*lab.Verdict, good, bad string) {
	if len(list) == 0 {
		return
	}
	b.WriteString("| what | where | expected | got | tolerance | source | |\n" +
		"|---|---|---|---|---|---|---|\n")
	line := 0
	for _, v := range list {
		holds, expected, tolerance, source := good, v.Expected(), v.Tolerance(), v.Source
		if !v.Pass {
			holds = bad
		}
		if v.Published != "" {
			expected += " (published: " + v.Published + ")"
		}
		if v.Why != "" {
			holds += "; " + v.Why
		}
		switch {
		case v.Line == line:
			source = ""
		case v.Because != "":
			tolerance = strings.TrimPrefix(tolerance+": "+v.Because, ": ")
		}
		line = v.Line
		for _, cell := range []string{
			v.What(), v.Case(), expected, v.Got(), tolerance, source, holds,
		} {
			b.WriteString("| " + markdownText(cell) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n")
}

func markdownText(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "_", "\\_", "<", "&lt;").Replace(s)
}
