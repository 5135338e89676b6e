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

const leftmost = -1

// columnsOf aligns rows to the left, without titles. A short row ends with empty cells.
func columnsOf(rows [][]string) string {
	var t text.Table
	for _, row := range rows {
		for i := range row {
			if i == len(t.Columns) {
				t.Add(text.Column{Left: true, Cells: make([]string, len(rows))})
			}
		}
	}
	for i, row := range rows {
		for k, cell := range row {
			t.Columns[k].Cells[i] = cell
		}
	}
	return t.String()
}
