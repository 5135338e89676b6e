package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lab"
)

// markdownHead is the top of the page that `make lab` writes.
const markdownHead = "# What the laboratory's experiments come to\n\n" +
	"Each preset that expects something, with what came out. `make lab` writes this page, and\n" +
	"`node lab check` prints the same to a terminal. Results do not depend on the machine.\n" +
	"Where a published number is not what theory says, both are here, and why.\n\n"

// writeMarkdown writes what an experiment came to as a section of the page.
func writeMarkdown(w io.Writer, j *lab.Judged) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n%s.\n\n", j.Name, markdownText(j.About))
	b.WriteString("| what | where | expected | got | tolerance | |\n|---|---|---|---|---|---|\n")
	for i := range j.Verdicts {
		v := &j.Verdicts[i]
		holds := "holds"
		if !v.Pass {
			holds = "**fails**"
		}
		expected := v.Expected()
		if v.Published != "" {
			expected += " (published: " + v.Published + ")"
		}
		if v.Why != "" {
			holds += "; " + v.Why
		}
		for _, cell := range []string{
			v.What(), v.Case(), expected, v.Got(), v.Tolerance(), holds,
		} {
			b.WriteString("| " + markdownText(cell) + " ")
		}
		b.WriteString("|\n")
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// markdownText keeps a text within its cell, and literal.
func markdownText(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "_", "\\_", "<", "&lt;").Replace(s)
}
