package repl

import (
	"strings"

	text "github.com/tidepool-net/tidepool/internal/table"
)

// table formats one row for each item of list, right-aligned. The head is the printed line of
// titles with "|" between the columns. A longer cell widens its column, but at most two spaces
// before the title remain. A "<" before a title aligns the column to the left.
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

// columnsOf formats rows without titles, aligned to the left. Missing cells are empty.
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
