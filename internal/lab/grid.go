package lab

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// gap is what is between two columns.
const gap = 2

// column is one column of a printed table: a head of two lines, and cells that are aligned at
// their ends, or where their reaches begin.
type column struct {
	head    [2]string
	cells   []string
	reaches []string
	left    bool
	silent  bool // it says nothing
}

func (c *column) widths() (cell, reach int) {
	for _, s := range c.cells {
		cell = max(cell, utf8.RuneCountInString(s))
	}
	for _, s := range c.reaches {
		reach = max(reach, utf8.RuneCountInString(s))
	}
	for _, s := range c.head {
		cell = max(cell, utf8.RuneCountInString(s)-reach)
	}
	return cell, reach
}

func (c *column) width() int {
	cell, reach := c.widths()
	return cell + reach
}

// point puts the decimal points of a column's numbers beneath each other.
func (c *column) point() {
	wide := 0
	behind := func(text string) int {
		if at := strings.LastIndexByte(text, '.'); at >= 0 {
			return len(text) - at
		}
		return 0
	}
	for _, text := range c.cells {
		wide = max(wide, behind(text))
	}
	for i, text := range c.cells {
		if strings.ContainsAny(text, "0123456789") {
			c.cells[i] += strings.Repeat(" ", wide-behind(text))
		}
	}
}

// grid is a table of columns.
type grid struct{ columns []column }

func (g *grid) add(c column) { g.columns = append(g.columns, c) }

func (g *grid) width() int {
	width := 0
	for i := range g.columns {
		width += g.columns[i].width() + gap
	}
	return max(0, width-gap)
}

func (g *grid) write(b *strings.Builder) {
	if len(g.columns) == 0 || len(g.columns[0].cells) == 0 {
		return
	}
	for i := range 2 {
		if !slices.ContainsFunc(g.columns, func(c column) bool { return c.head[i] != "" }) {
			continue
		}
		g.line(b, func(c *column) string { return c.aligned(c.head[i], c.width()) })
	}
	for i := range g.columns[0].cells {
		g.line(b, func(c *column) string {
			cell, wide := c.widths()
			if c.reaches == nil {
				return c.aligned(c.cells[i], cell)
			}
			rest := max(0, wide-utf8.RuneCountInString(c.reaches[i]))
			return c.aligned(c.cells[i], cell) + c.reaches[i] + strings.Repeat(" ", rest)
		})
	}
}

// aligned is a text as wide as a column, at its side.
func (c *column) aligned(text string, width int) string {
	pad := strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
	if c.left {
		return text + pad
	}
	return pad + text
}

// line writes a line of a table, without blanks at its end.
func (g *grid) line(b *strings.Builder, of func(*column) string) {
	cells := make([]string, len(g.columns))
	for i := range g.columns {
		cells[i] = of(&g.columns[i])
	}
	line := strings.Join(cells, strings.Repeat(" ", gap))
	b.WriteString(strings.TrimRight(line, " ") + "\n")
}
