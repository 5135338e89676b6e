package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Trace says when a link may send: each time is an opportunity for one packet of 1504 bytes. They
// are whole milliseconds, in order, several alike where so much may leave. Behind the last the
// trace begins again, at that time.
type Trace []time.Duration

// MaxLines bounds a trace: what a gigabit a second needs for two minutes.
const MaxLines = 10_000_000

// OpportunityBits is what an opportunity counts for in rates: a packet of 1500 bytes.
const OpportunityBits = 12_000

// maxTime keeps a trace's times within what the laboratory runs.
const maxTime = 1000 * time.Hour

// Error is a mistake in a file.
type Error struct {
	File string
	Line int // 0: of the file as a whole
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return e.File + ":" + strconv.Itoa(e.Line) + ": " + e.Msg
}

// Parse reads a trace: a time in milliseconds in each line. Carriage returns and empty lines at
// the end, which mahimahi does not take, are taken and told in warnings. Errors are of type
// *Error.
func Parse(name string, text []byte) (t Trace, warnings []string, err error) {
	rest := string(text)
	crlf := false
	last := int64(-1)
	for line := 1; rest != ""; line++ {
		var field string
		field, rest, _ = strings.Cut(rest, "\n")
		bad := func(msg string) (Trace, []string, error) {
			return nil, warnings, &Error{File: name, Line: line, Msg: msg}
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
			return bad("an empty line: want a time in milliseconds")
		}
		if line > MaxLines {
			return bad(fmt.Sprintf("more than %d lines", MaxLines))
		}
		ms, err := strconv.ParseInt(field, 10, 64)
		switch {
		case err != nil || ms < 0:
			return bad(fmt.Sprintf("%.40q is not a time: want whole milliseconds such as 17",
				field))
		case time.Duration(ms) > maxTime/time.Millisecond:
			return bad(fmt.Sprintf("%d ms is later than %v", ms, maxTime))
		case ms < last:
			return bad(fmt.Sprintf("%d ms comes behind %d: times are in order", ms, last))
		}
		last = ms
		t = append(t, time.Duration(ms)*time.Millisecond)
	}
	if crlf {
		warnings = append(warnings, name+": lines end in carriage returns")
	}
	switch last {
	case -1:
		return nil, warnings, &Error{
			File: name, Msg: "no lines: want a time in milliseconds in each",
		}
	case 0:
		return nil, warnings, &Error{
			File: name, Line: len(t),
			Msg: "the last time is 0: a trace needs a length to begin again",
		}
	}
	return t, warnings, nil
}

// Format writes a trace as mahimahi reads it.
func (t Trace) Format() []byte {
	out := make([]byte, 0, 7*len(t))
	for _, at := range t {
		out = append(strconv.AppendInt(out, int64(at/time.Millisecond), 10), '\n')
	}
	return out
}
