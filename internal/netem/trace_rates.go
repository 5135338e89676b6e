package netem

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// ParseRates parses two columns: a time in seconds, and the rate in Mbit/s from then on. Traces of
// video players have this form. The last line gives the end; its rate is ignored. Lines that begin
// with # are comments. Errors are of type *diagnostic.Error.
func ParseRates(name string, text []byte) (Schedule, error) {
	var s Schedule
	var first, last float64
	line := 0
	for field := range strings.Lines(string(text)) {
		line++
		words := strings.FieldsFunc(field, func(r rune) bool {
			return r == ' ' || r == '\t' || r == ',' || r == '\r' || r == '\n'
		})
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		bad := func(msg, want string) (Schedule, error) {
			return s, &diagnostic.Error{File: name, Line: line, Msg: msg, Want: want}
		}
		if len(words) != 2 {
			return bad(fmt.Sprintf("%d columns", len(words)), "two: seconds and Mbit/s")
		}
		at, err1 := strconv.ParseFloat(words[0], 64)
		rate, err2 := strconv.ParseFloat(words[1], 64)
		const most = 1e9
		if err1 != nil || err2 != nil || !(math.Abs(at) < most*1e3) || !(rate >= 0 && rate < most) {
			return bad(fmt.Sprintf("%.40q", strings.TrimSpace(field)),
				"two numbers: seconds and Mbit/s")
		}
		if len(s.Steps) == 0 {
			first = at
		} else if at <= last {
			return bad(fmt.Sprintf("%s s follows %v s", words[0], last), "times in ascending order")
		}
		last = at
		s.Steps = append(s.Steps, Step{
			// Counting from the first time keeps rounding errors from adding up.
			At:   time.Duration(math.Round((at-first)*1e3)) * time.Millisecond,
			Rate: BitsPerSecond(math.Round(rate * 1e6)),
		})
	}
	end := len(s.Steps) - 1
	if end < 1 {
		return s, &diagnostic.Error{
			File: name, Msg: "no rates", Want: "two lines or more: the last gives the end",
		}
	}
	s.Steps, s.Every = s.Steps[:end], s.Steps[end].At
	return s, nil
}

// rates returns the rate in each window, in bits/s. The last window ends with the trace.
func (t Trace) rates(window time.Duration) []float64 {
	end := t[len(t)-1]
	rates := make([]float64, (end+window-1)/window)
	for _, at := range t {
		// An opportunity exactly at the end of a window belongs to that window.
		rates[max(at-1, 0)/window] += traceBits
	}
	for i := range rates {
		rates[i] /= min(window, end-time.Duration(i)*window).Seconds()
	}
	return rates
}

// FormatRates returns the mean rate in each window, in the form that ParseRates reads. The last
// window ends with the trace.
func (t Trace) FormatRates(window time.Duration) []byte {
	rates := t.rates(window)
	var out []byte
	line := func(at time.Duration, rate float64) {
		out = strconv.AppendFloat(out, at.Seconds(), 'f', -1, 64)
		out = append(out, ' ')
		out = append(strconv.AppendFloat(out, rate/1e6, 'f', -1, 64), '\n')
	}
	for i, rate := range rates {
		line(time.Duration(i)*window, rate)
	}
	line(t[len(t)-1], rates[len(rates)-1])
	return out
}
