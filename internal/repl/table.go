package repl

import (
	"strings"

	text "github.com/tidepool-net/tidepool/internal/table"
)

// column is one column of a table: right-aligned, as in the course's tables.
type column struct {
	title string
	width int // minimum, with the blanks before it
	gap   int // minimum number of blanks before it
}

// table formats rows under their titles. The minimum widths reproduce the course's header lines;
// longer entries widen the columns.
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

// leftmost marks a first column that is left-aligned.
const leftmost = -1
