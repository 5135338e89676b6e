package repl

import (
	"strings"
	"unicode/utf8"
)

// column is one column of a table: right-aligned, as the family prints them.
type column struct {
	title string
	width int // at least, the blanks before it included
	gap   int // blanks before it, at least
}

// table renders rows under their titles. The columns' least widths make the family's own header
// lines come out blank for blank; longer entries widen them.
func table(columns []column, rows [][]string) string {
	widths := make([]int, len(columns))
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
		widths[i] = max(c.width, c.gap+len(c.title))
		for _, row := range rows {
			widths[i] = max(widths[i], max(0, c.gap)+utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range append([][]string{titles}, rows...) {
		for i, cell := range row {
			blanks := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 && columns[0].gap < 0 {
				b.WriteString(cell + blanks)
			} else {
				b.WriteString(blanks + cell)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// leftmost marks a first column that is aligned to the left.
const leftmost = -1
