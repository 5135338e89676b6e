// Package table prints columns of text, for terminals and as a tabular of LaTeX, and draws the
// segments of connections as ladders.
package table

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Gap is the number of blanks between two columns of most tables.
const Gap = 2

// Column is a column with a head of two lines. Its cells are aligned to the left or to the right.
// The suffixes follow the cells. The zero value is empty and aligned to the right.
type Column struct {
	Head     [2]string
	Cells    []string
	Suffixes []string // text after each cell, such as the half-width of an interval; nil: no texts
	Left     bool
	Gap      int // number of blanks before the column; ignored for the first column
}

// Table is a number of columns with the same number of cells.
type Table struct{ Columns []Column }

// New returns a table with one line of heads. A head that begins with "<" aligns its column to the
// left.
func New(heads ...string) *Table {
	t := &Table{}
	for _, h := range heads {
		text, left := strings.CutPrefix(h, "<")
		t.Add(Column{Head: [2]string{"", text}, Left: left})
	}
	return t
}

// Add adds a column, with a Gap before it.
func (t *Table) Add(c Column) {
	if len(t.Columns) > 0 {
		c.Gap = Gap
	}
	t.Columns = append(t.Columns, c)
}

// Row adds a cell to each column.
func (t *Table) Row(cells ...string) {
	for i, c := range cells {
		t.Columns[i].Cells = append(t.Columns[i].Cells, c)
	}
}

// Wrapped adds a row whose cells have several lines.
func (t *Table) Wrapped(cells ...[]string) {
	lines := 1
	for _, c := range cells {
		lines = max(lines, len(c))
	}
	for line := range lines {
		for i, c := range cells {
			text := ""
			if line < len(c) {
				text = c[line]
			}
			t.Columns[i].Cells = append(t.Columns[i].Cells, text)
		}
	}
}

// Wrap breaks a text between words.
func Wrap(text string, width int) []string {
	var lines []string
	for word := range strings.FieldsSeq(text) {
		last := len(lines) - 1
		if last >= 0 && len([]rune(lines[last]))+1+len([]rune(word)) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func (c *Column) widths() (cell, suffix int) {
	for _, s := range c.Cells {
		cell = max(cell, utf8.RuneCountInString(s))
	}
	for _, s := range c.Suffixes {
		suffix = max(suffix, utf8.RuneCountInString(s))
	}
	for _, s := range c.Head {
		cell = max(cell, utf8.RuneCountInString(s)-suffix)
	}
	return cell, suffix
}

// Width returns the width of the column in characters, without its gap.
func (c *Column) Width() int {
	cell, suffix := c.widths()
	return cell + suffix
}

// AlignPoints aligns the decimal points of a column's numbers.
func (c *Column) AlignPoints() {
	wide := 0
	behind := func(text string) int {
		if at := strings.LastIndexByte(text, '.'); at >= 0 {
			return len(text) - at
		}
		return 0
	}
	for _, text := range c.Cells {
		wide = max(wide, behind(text))
	}
	for i, text := range c.Cells {
		if strings.ContainsAny(text, "0123456789") {
			c.Cells[i] += strings.Repeat(" ", wide-behind(text))
		}
	}
}

// Width returns the width of a line in characters.
func (t *Table) Width() int {
	width := 0
	for i := range t.Columns {
		if i > 0 {
			width += t.Columns[i].Gap
		}
		width += t.Columns[i].Width()
	}
	return width
}

// Lines returns the lines of the table, the heads first, padded to the same width.
func (t *Table) Lines() []string {
	var lines []string
	line := func(of func(*Column, int, int) string) {
		var b strings.Builder
		for i := range t.Columns {
			c := &t.Columns[i]
			cell, suffix := c.widths()
			if i > 0 {
				b.WriteString(strings.Repeat(" ", c.Gap))
			}
			b.WriteString(of(c, cell, suffix))
		}
		lines = append(lines, b.String())
	}
	for i := range 2 {
		if t.headed(i) {
			line(func(c *Column, cell, suffix int) string {
				return c.aligned(c.Head[i], cell+suffix)
			})
		}
	}
	for i := range t.rows() {
		line(func(c *Column, cell, suffix int) string {
			text := c.aligned(c.Cells[i], cell)
			if c.Suffixes == nil {
				return text
			}
			blanks := max(0, suffix-utf8.RuneCountInString(c.Suffixes[i]))
			return text + c.Suffixes[i] + strings.Repeat(" ", blanks)
		})
	}
	return lines
}

// String returns the table without blanks at the ends of its lines; empty if it has no rows.
func (t *Table) String() string {
	var b strings.Builder
	if t.rows() == 0 {
		return ""
	}
	for _, line := range t.Lines() {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (t *Table) rows() int {
	if len(t.Columns) == 0 {
		return 0
	}
	return len(t.Columns[0].Cells)
}

func (t *Table) headed(i int) bool {
	return slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Head[i] != "" })
}

// Text returns the cell of a row with the text after it.
func (c *Column) Text(row int) string {
	if c.Suffixes == nil {
		return c.Cells[row]
	}
	return c.Cells[row] + c.Suffixes[row]
}

// aligned pads a text to a width.
func (c *Column) aligned(text string, width int) string {
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if c.Left {
		return text + pad
	}
	return pad + text
}

// latexText escapes LaTeX's special characters.
var latexText = strings.NewReplacer(
	`\`, `\textbackslash{}`, "&", `\&`, "%", `\%`, "$", `\$`, "#", `\#`, "_", `\_`, "{", `\{`,
	"}", `\}`, "~", `$\sim$`, "^", `\textasciicircum{}`, "±", `$\pm$`,
	"µ", `$\mu$`, "μ", `$\mu$`, "×", `$\times$`, "·", `$\cdot$`, "≤", `$\le$`, "≥", `$\ge$`,
	"–", "--", "—", "---",
	"…", `\dots{}`, "∞", `$\infty$`, "<", `$<$`, ">", `$>$`, "√", `$\surd$`,
)

// LaTeX returns the table as a tabular with the rules of booktabs, between two comments.
func (t *Table) LaTeX(title, legend string) string {
	if t.rows() == 0 {
		return comment(title)
	}
	var b strings.Builder
	b.WriteString(comment(title) + "% \\usepackage{booktabs}\n\\begin{tabular}{")
	for i := range t.Columns {
		b.WriteString(map[bool]string{true: "l", false: "r"}[t.Columns[i].Left])
	}
	b.WriteString("}\n\\toprule\n")
	line := func(of func(*Column) string) {
		cells := make([]string, len(t.Columns))
		for i := range t.Columns {
			words := strings.Join(strings.Fields(of(&t.Columns[i])), " ")
			cells[i] = latexText.Replace(words)
		}
		b.WriteString(strings.TrimSpace(strings.Join(cells, " & ")) + " \\\\\n")
	}
	for i := range 2 {
		if t.headed(i) {
			line(func(c *Column) string { return c.Head[i] })
		}
	}
	b.WriteString("\\midrule\n")
	for i := range t.rows() {
		line(func(c *Column) string {
			if c.Suffixes == nil {
				return c.Cells[i]
			}
			return c.Cells[i] + " " + c.Suffixes[i]
		})
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n" + comment(legend))
	return b.String()
}

// comment formats a text as LaTeX comments.
func comment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		b.WriteString(strings.TrimRight("% "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	return b.String()
}
