package result

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// column is how one column of a table of T is written and read. Tables are CSV without
// quotes: numbers and words, a row a line.
type column[T any] struct {
	name  string
	write func(dst []byte, row *T) []byte
	read  func(text string, row *T) error
}

// timeColumn is a time in units, exactly.
func timeColumn[T any](name string, unit time.Duration, at func(*T) *time.Duration) column[T] {
	return column[T]{
		name:  name,
		write: func(dst []byte, row *T) []byte { return appendTime(dst, *at(row), unit) },
		read: func(text string, row *T) (err error) {
			*at(row), err = parseTime(text, unit)
			return err
		},
	}
}

// integerColumn is a whole number.
func integerColumn[T any, N int | int64 | uint64](name string, at func(*T) *N) column[T] {
	return column[T]{
		name: name,
		write: func(dst []byte, row *T) []byte {
			if n := *at(row); n < 0 {
				return strconv.AppendInt(dst, int64(n), 10)
			}
			return strconv.AppendUint(dst, uint64(*at(row)), 10)
		},
		read: func(text string, row *T) error {
			if strings.HasPrefix(text, "-") {
				n, err := strconv.ParseInt(text, 10, 64)
				*at(row) = N(n)
				if N(0)-1 > 0 && n != 0 {
					return fmt.Errorf("%q is negative", text)
				}
				return err
			}
			n, err := strconv.ParseUint(text, 10, 64)
			*at(row) = N(n)
			if *at(row) < 0 {
				return fmt.Errorf("%q is too large", text)
			}
			return err
		},
	}
}

// wordColumn is text without commas, quotes and line ends: what had any lacks them.
func wordColumn[T any](name string, at func(*T) *string) column[T] {
	return column[T]{
		name: name,
		write: func(dst []byte, row *T) []byte {
			return append(dst, strings.NewReplacer(
				",", ";", `"`, "'", "\r", " ", "\n", " ").Replace(*at(row))...)
		},
		read: func(text string, row *T) error {
			*at(row) = text
			return nil
		},
	}
}

// formatTable writes rows below a line of names.
func formatTable[T any](columns []column[T], rows []T) []byte {
	var dst []byte
	for i := range columns {
		dst = append(append(dst, columns[i].name...), ',')
	}
	dst[len(dst)-1] = '\n'
	for i := range rows {
		for j := range columns {
			dst = append(columns[j].write(dst, &rows[i]), ',')
		}
		dst[len(dst)-1] = '\n'
	}
	return dst
}

// parseTable reads what formatTable wrote; the path is for errors.
func parseTable[T any](path string, columns []column[T], text []byte) ([]T, error) {
	var names []string
	for i := range columns {
		names = append(names, columns[i].name)
	}
	header := strings.Join(names, ",")
	first, rest, _ := bytes.Cut(text, []byte{'\n'})
	if got := strings.TrimSuffix(string(first), "\r"); got != header {
		return nil, fmt.Errorf("%s:1: %w: want the columns %s", path, ErrFile, header)
	}
	rows := make([]T, 0, bytes.Count(rest, []byte{'\n'}))
	for line := 2; len(rest) > 0; line++ {
		var row []byte
		row, rest, _ = bytes.Cut(rest, []byte{'\n'})
		fields := strings.Split(strings.TrimSuffix(string(row), "\r"), ",")
		if len(fields) != len(columns) {
			return nil, fmt.Errorf("%s:%d: %w: %d fields, want %d",
				path, line, ErrFile, len(fields), len(columns))
		}
		var t T
		for j := range columns {
			if err := columns[j].read(fields[j], &t); err != nil {
				return nil, fmt.Errorf("%s:%d: %w: %s: %w",
					path, line, ErrFile, columns[j].name, err)
			}
		}
		rows = append(rows, t)
	}
	return rows, nil
}
