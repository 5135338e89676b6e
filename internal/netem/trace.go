package netem

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// Trace is the content of a mahimahi trace file: the times at which a link may send a packet of
// up to OpportunityBytes. Times are whole milliseconds in ascending order; a time may repeat. The
// trace starts again at its last time.
type Trace []time.Duration

// maxTraceLines limits the lines of a trace: enough for two minutes at 1 Gbit/s.
const maxTraceLines = 10_000_000

// traceBits is the size of an opportunity for computing a trace's rate: a packet of 1500 bytes.
const (
	traceBits  = 8 * (OpportunityBytes - OpportunityOverhead)
	fullPacket = 1000 * traceBits // packet size in thousandths of a bit
)

// maxTraceTime limits the times of a trace.
const maxTraceTime = 1000 * time.Hour

// ParseTrace parses a trace: each line has one time in milliseconds. Carriage returns and trailing
// empty lines, which mahimahi rejects, only cause warnings. Errors are of type *diagnostic.Error.
func ParseTrace(name string, text []byte) (t Trace, warnings []string, err error) {
	rest := string(text)
	crlf := false
	last := int64(-1)
	for line := 1; rest != ""; line++ {
		var field string
		field, rest, _ = strings.Cut(rest, "\n")
		bad := func(msg, want string) (Trace, []string, error) {
			return nil, warnings, &diagnostic.Error{File: name, Line: line, Msg: msg, Want: want}
		}
		if cut, ok := strings.CutSuffix(field, "\r"); ok {
			field, crlf = cut, true
		}
		if strings.TrimSpace(field) == "" {
			if strings.TrimSpace(rest) == "" {
				warnings = append(warnings,
					fmt.Sprintf("%s:%d: empty lines at the end", name, line))
				break
			}
			return bad("an empty line", "a time in milliseconds")
		}
		if line > maxTraceLines {
			return bad(fmt.Sprintf("more than %d lines", maxTraceLines), "")
		}
		ms, err := strconv.ParseInt(field, 10, 64)
		switch {
		case err != nil || ms < 0:
			return nil, warnings, &diagnostic.Error{
				File: name, Line: line, Col: 1 + notDigit(field), Text: field,
				Msg:  fmt.Sprintf("%.40q is not a time", field),
				Want: "whole milliseconds such as 17",
			}
		case time.Duration(ms) > maxTraceTime/time.Millisecond:
			return bad(fmt.Sprintf("%d ms is later than %v", ms, maxTraceTime), "")
		case ms < last:
			return bad(fmt.Sprintf("%d ms follows %d ms", ms, last), "times in ascending order")
		}
		last = ms
		t = append(t, time.Duration(ms)*time.Millisecond)
	}
	if crlf {
		warnings = append(warnings, name+": lines end in carriage returns")
	}
	switch last {
	case -1:
		return nil, warnings, &diagnostic.Error{
			File: name, Msg: "no lines", Want: "a time in milliseconds in each",
		}
	case 0:
		return nil, warnings, &diagnostic.Error{
			File: name, Line: len(t), Msg: "the last time is 0", Want: "1 ms or more: the length",
		}
	}
	return t, warnings, nil
}

// notDigit returns the number of characters before the first one that is not a digit.
func notDigit(field string) int {
	at := strings.IndexFunc(field, func(r rune) bool { return r < '0' || r > '9' })
	return utf8.RuneCountInString(field[:max(0, at)])
}

// Format returns the trace as a file that mahimahi reads.
func (t Trace) Format() []byte {
	out := make([]byte, 0, 7*len(t))
	for _, at := range t {
		out = append(strconv.AppendInt(out, int64(at/time.Millisecond), 10), '\n')
	}
	return out
}

// TraceInfo summarizes a Trace.
type TraceInfo struct {
	Lines  int
	Length time.Duration // time at which the trace starts again
	First  time.Duration
	// Mean is the mean rate of packets of 1500 bytes in bits/s, which is what the names of traces
	// usually say. Bytes is the rate in bits/s if all OpportunityBytes are used.
	Mean, Bytes float64
	// Gap is the longest time without an opportunity, and Burst is the largest number of
	// opportunities in one millisecond.
	Gap   time.Duration
	Burst int
	// Rates are percentiles of the rate in windows of length Window, in bits/s: the minimum, 5 %,
	// the median, 95 % and the maximum.
	Window time.Duration
	Rates  [5]float64
}

// Info summarizes the trace.
func (t Trace) Info() TraceInfo {
	i := TraceInfo{Lines: len(t), Length: t[len(t)-1], First: t[0], Gap: t[0], Burst: 1}
	i.Mean = float64(len(t)) * traceBits / i.Length.Seconds()
	i.Bytes = float64(len(t)) * 8 * OpportunityBytes / i.Length.Seconds()
	burst := 1
	for k := 1; k < len(t); k++ {
		i.Gap = max(i.Gap, t[k]-t[k-1])
		if t[k] != t[k-1] {
			burst = 0
		}
		burst++
		i.Burst = max(i.Burst, burst)
	}
	i.Window = time.Second
	if i.Length < 5*time.Second {
		i.Window = max(i.Length/5, time.Millisecond)
	}
	rates := t.rates(i.Window)
	rates = rates[:max(1, int(i.Length/i.Window))] // includes only whole windows
	slices.Sort(rates)
	for k, p := range []int{0, 5, 50, 95, 100} {
		i.Rates[k] = rates[(len(rates)-1)*p/100]
	}
	return i
}
