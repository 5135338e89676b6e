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

// columnsOf are the columns of a table of T, for samples with a script's own ones.
func columnsOf[T Row](own ...string) []column[T] {
	var list any
	switch any(*new(T)).(type) {
	case Sample:
		list = withOwn(own)
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
// Own are the names of a script's own numbers, for samples.
func FormatRows[T Row](rows []T, own ...string) []byte {
	return formatTable(columnsOf[T](own...), rows)
}

// ParseRows reads rows of which a line of names says what columns they have: some of a file's, in
// any order. What a row lacks is 0. The path is for errors.
func ParseRows[T Row](path string, text []byte) ([]T, error) {
	head, _, _ := bytes.Cut(text, []byte{'\n'})
	var columns []column[T]
	names := strings.Split(strings.TrimSuffix(string(head), "\r"), ",")
	var own []string
	for _, name := range names {
		if mine, ok := strings.CutPrefix(name, ownPrefix); ok {
			own = append(own, mine)
		}
	}
	all := columnsOf[T](own...)
	for _, name := range names {
		i := slices.IndexFunc(all, func(c column[T]) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s:1: %w: no column is called %q", path, ErrFile, name)
		}
		columns = append(columns, all[i])
	}
	return parseTable(path, columns, text)
}
