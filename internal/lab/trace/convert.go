package trace

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ParseRates reads rates over time, in two columns: seconds, and Mbit/s from then to the next
// line, which is how traces of video players are written. Their last line says where they end,
// and its rate is not used. Lines that begin with # are left out. Errors are of type *Error.
func ParseRates(name string, text []byte) ([]Step, error) {
	type row struct{ at, rate float64 }
	var rows []row
	line := 0
	for field := range strings.Lines(string(text)) {
		line++
		words := strings.FieldsFunc(field, func(r rune) bool {
			return r == ' ' || r == '\t' || r == ',' || r == '\r' || r == '\n'
		})
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		bad := func(msg string) error { return &Error{File: name, Line: line, Msg: msg} }
		if len(words) != 2 {
			return nil, bad(fmt.Sprintf("%d columns: want two, seconds and Mbit/s", len(words)))
		}
		at, err1 := strconv.ParseFloat(words[0], 64)
		rate, err2 := strconv.ParseFloat(words[1], 64)
		const most = 1e9
		if err1 != nil || err2 != nil || !(math.Abs(at) < most*1e3) || !(rate >= 0 && rate < most) {
			return nil, bad(fmt.Sprintf("%.40q: want two numbers, seconds and Mbit/s",
				strings.TrimSpace(field)))
		}
		if len(rows) > 0 && at <= rows[len(rows)-1].at {
			return nil, bad(fmt.Sprintf("%s s comes behind %v: times are in order", words[0],
				rows[len(rows)-1].at))
		}
		rows = append(rows, row{at, rate})
	}
	if len(rows) < 2 {
		return nil, &Error{File: name, Msg: "want two lines or more: the last says where it ends"}
	}
	steps := make([]Step, len(rows)-1)
	for i := range steps {
		// From the beginning, so that roundings do not add up.
		begin, end := rows[i].at-rows[0].at, rows[i+1].at-rows[0].at
		steps[i] = Step{
			Rate:     int64(math.Round(rows[i].rate * 1e6)),
			Duration: milliseconds(end) - milliseconds(begin),
		}
	}
	return steps, nil
}

func milliseconds(s float64) time.Duration {
	return time.Duration(math.Round(s*1e3)) * time.Millisecond
}

// FormatRates writes what rate a trace has in each window, as ParseRates reads it. The last window
// ends with the trace.
func (t Trace) FormatRates(window time.Duration) []byte {
	end := t[len(t)-1]
	bits := make([]float64, (end+window-1)/window)
	for _, at := range t {
		// The opportunity at a window's end is its last.
		bits[max(at-1, 0)/window] += OpportunityBits
	}
	var out []byte
	line := func(at time.Duration, rate float64) {
		out = strconv.AppendFloat(out, at.Seconds(), 'f', -1, 64)
		out = append(out, ' ')
		out = append(strconv.AppendFloat(out, rate/1e6, 'f', -1, 64), '\n')
	}
	var rate float64
	for i, b := range bits {
		from := time.Duration(i) * window
		rate = b / min(window, end-from).Seconds()
		line(from, rate)
	}
	line(end, rate)
	return out
}
