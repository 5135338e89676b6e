package result

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Row is a row of a record's tables.
type Row interface {
	Sample | Segment | Point | LinkEvent
}

// columnsOf are the columns of a table of T.
func columnsOf[T Row]() []column[T] {
	var list any
	switch any(*new(T)).(type) {
	case Sample:
		list = sampleColumns
	case Segment:
		list = segmentColumns
	case Point:
		list = pointColumns
	case LinkEvent:
		list = eventColumns
	}
	columns, ok := list.([]column[T])
	if !ok {
		panic("BUG: result: a table without columns")
	}
	return columns
}

// FormatRows writes rows as a file of a record has them: below a line of their columns' names.
func FormatRows[T Row](rows []T) []byte { return formatTable(columnsOf[T](), rows) }

// ParseRows reads rows of which a line of names says what columns they have: some of a file's, in
// any order. What a row lacks is 0. The path is for errors.
func ParseRows[T Row](path string, text []byte) ([]T, error) {
	all := columnsOf[T]()
	head, _, _ := bytes.Cut(text, []byte{'\n'})
	var columns []column[T]
	for name := range strings.SplitSeq(strings.TrimSuffix(string(head), "\r"), ",") {
		i := slices.IndexFunc(all, func(c column[T]) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s:1: %w: no column is called %q", path, ErrFile, name)
		}
		columns = append(columns, all[i])
	}
	return parseTable(path, columns, text)
}
