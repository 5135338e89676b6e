package repl

import (
	"strings"

	text "github.com/tidepool-net/tidepool/internal/table"
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
	var t text.Table
	for i, c := range columns {
		gap := max(0, c.gap)
		t.Columns = append(t.Columns, text.Column{
			Head: [2]string{"", c.title}, Least: c.width - gap, Gap: gap,
			Left: i == 0 && c.gap < 0,
		})
	}
	for _, row := range rows {
		t.Row(row...)
	}
	return strings.Join(t.Lines(), "\n") + "\n"
}

// leftmost marks a first column that is aligned to the left.
const leftmost = -1
