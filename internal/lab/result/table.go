package result

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// column describes how to write and read a column of a table of T. Tables are CSV without quotes:
// numbers and words, one row per line.
type column[T any] struct {
	name  string
	write func(dst []byte, row *T) []byte
	read  func(text string, row *T) error
}

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

// wordColumn is a column of text. Commas, quotes and line ends are replaced.
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

// parseTable parses the output of formatTable; the path is for errors.
func parseTable[T any](path string, columns []column[T], text []byte) ([]T, error) {
	var names []string
	for i := range columns {
		names = append(names, columns[i].name)
	}
	header := strings.Join(names, ",")
	first, rest, _ := bytes.Cut(text, []byte{'\n'})
	if got := strings.TrimSuffix(string(first), "\r"); got != header {
		return nil, fmt.Errorf("%s:1: %w: must have the columns %s", path, ErrFile, header)
	}
	rows := make([]T, 0, bytes.Count(rest, []byte{'\n'}))
	for line := 2; len(rest) > 0; line++ {
		var row []byte
		row, rest, _ = bytes.Cut(rest, []byte{'\n'})
		fields := strings.Split(strings.TrimSuffix(string(row), "\r"), ",")
		if len(fields) != len(columns) {
			return nil, fmt.Errorf("%s:%d: %w: %d fields: must be %d",
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

// Row is a row of a record's tables: a Sample, Segment, Point or LinkEvent.
type Row[T any] interface {
	// columns returns the columns of the table. own are the names of a script's variables.
	columns(own []string) []column[T]
}

// FormatRows formats rows as a file of a record, below a line with the columns' names. For samples,
// own are the names of a script's variables.
func FormatRows[T Row[T]](rows []T, own ...string) []byte {
	var row T
	return formatTable(row.columns(own), rows)
}

// ParseRows parses rows below a header line, which may have some of the columns in any order.
// Missing columns are 0. The path is for errors.
func ParseRows[T Row[T]](path string, text []byte) ([]T, error) {
	head, _, _ := bytes.Cut(text, []byte{'\n'})
	var columns []column[T]
	names := strings.Split(strings.TrimSuffix(string(head), "\r"), ",")
	var own []string
	for _, name := range names {
		if mine, ok := strings.CutPrefix(name, ownPrefix); ok {
			own = append(own, mine)
		}
	}
	var row T
	all := row.columns(own)
	for _, name := range names {
		i := slices.IndexFunc(all, func(c column[T]) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%s:1: %w: no column %q", path, ErrFile, name)
		}
		columns = append(columns, all[i])
	}
	return parseTable(path, columns, text)
}

// appendTime writes a time as an exact decimal number of units. The unit is a power of ten of
// nanoseconds.
func appendTime(dst []byte, d, unit time.Duration) []byte {
	if d < 0 {
		dst = append(dst, '-')
		d = -d
	}
	dst = strconv.AppendInt(dst, int64(d/unit), 10)
	rest := d % unit
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for rest > 0 {
		unit /= 10
		dst = append(dst, byte('0'+rest/unit))
		rest %= unit
	}
	return dst
}

// parseTime parses the output of appendTime.
func parseTime(text string, unit time.Duration) (time.Duration, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, rest, _ := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole, 10, 63)
	if err != nil || n > uint64((1<<63-1)/unit) {
		return 0, fmt.Errorf("%q is not a time", text)
	}
	d := time.Duration(n) * unit
	for _, c := range []byte(rest) {
		unit /= 10
		if c < '0' || c > '9' || unit == 0 {
			return 0, fmt.Errorf("%q is not a time", text)
		}
		d += time.Duration(c-'0') * unit
	}
	if d < 0 {
		return 0, fmt.Errorf("%q is too long", text)
	}
	if negative {
		d = -d
	}
	return d, nil
}
