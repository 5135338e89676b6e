package repl

import (
	"strings"

	text "github.com/tidepool-net/tidepool/internal/table"
)

// table formats a row for each of a list, right-aligned under a head: the printed line, with "|"
// between columns. Longer cells widen a column, but at most two blanks before its title remain. "<"
// aligns a column to the left.
func table[T any](head string, list []T, row func(*T) []string) string {
	var t text.Table
	for i, title := range strings.Split(head, "|") {
		title, left := strings.CutPrefix(title, "<")
		gap := 0
		if i > 0 {
			gap = min(text.Gap, len(title)-len(strings.TrimLeft(title, " ")))
		}
		t.Columns = append(t.Columns, text.Column{
			Head: [2]string{"", title[gap:]}, Gap: gap, Left: left,
		})
	}
	for i := range list {
		t.Row(row(&list[i])...)
	}
	return strings.Join(t.Lines(), "\n") + "\n"
}

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
