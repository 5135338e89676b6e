package lab

import (
	"slices"
	"strings"
)

// latexText replaces what LaTeX would take for its own.
var latexText = strings.NewReplacer(
	`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`,
	"}", `\}`, "~", `$\sim$`, "^", `\textasciicircum{}`, "±", `$\pm$`, "µ", `$\mu$`, "μ", `$\mu$`,
	"×", `$\times$`, "·", `$\cdot$`, "≤", `$\le$`, "≥", `$\ge$`, "–", "--", "—", "---",
	"…", `\dots{}`, "∞", `$\infty$`, "<", `$<$`, ">", `$>$`, "√", `$\surd$`,
)

// latex is the grid as a tabular with the rules of booktabs, between two comments.
func (g *grid) latex(title, legend string) string {
	var b strings.Builder
	b.WriteString(latexComment(title))
	if len(g.columns) == 0 || len(g.columns[0].cells) == 0 {
		return b.String()
	}
	b.WriteString("% \\usepackage{booktabs}\n\\begin{tabular}{")
	for i := range g.columns {
		b.WriteString(map[bool]string{true: "l", false: "r"}[g.columns[i].left])
	}
	b.WriteString("}\n\\toprule\n")
	line := func(of func(*column) string) {
		cells := make([]string, len(g.columns))
		for i := range g.columns {
			words := strings.Join(strings.Fields(of(&g.columns[i])), " ")
			cells[i] = latexText.Replace(words)
		}
		b.WriteString(strings.TrimSpace(strings.Join(cells, " & ")) + " \\\\\n")
	}
	for i := range 2 {
		if slices.ContainsFunc(g.columns, func(c column) bool { return c.head[i] != "" }) {
			line(func(c *column) string { return c.head[i] })
		}
	}
	b.WriteString("\\midrule\n")
	for i := range g.columns[0].cells {
		line(func(c *column) string {
			if c.reaches == nil {
				return c.cells[i]
			}
			return c.cells[i] + " " + c.reaches[i]
		})
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n" + latexComment(legend))
	return b.String()
}

// latexComment is a text as comments of LaTeX.
func latexComment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		b.WriteString(strings.TrimRight("% "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	return b.String()
}
