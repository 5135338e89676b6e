package trace

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/result"
)

// Overhead is what mahimahi counts of each packet beyond IP: the header of its TUN device.
const Overhead = 4

// Header is what a log says before its lines.
type Header struct {
	// Link is "Downlink" or "Uplink", Trace and Queue what it was made with, in mahimahi's words.
	Link, Trace, Queue string
	// Command is how it was made, and Note what a reader should know.
	Command, Note string
}

// WriteLog writes what a link did as a log of mahimahi's mm-link. Sizes are those of packets with
// Overhead. A link without opportunities of its own, whose rate is a number, has those of a trace
// of that rate, so that programs that read such logs know its capacity.
func WriteLog(w io.Writer, h Header, l *result.LinkRecord) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# mahimahi mm-link (%s) [%s] > log\n# command line: %s\n# queue: %s\n",
		oneLine(h.Link), oneLine(h.Trace), oneLine(h.Command), oneLine(h.Queue))
	if h.Note != "" {
		fmt.Fprintf(out, "# note: %s\n", oneLine(h.Note))
	}
	fmt.Fprint(out, "# init timestamp: 0\n# base timestamp: 0\n")
	chances := opportunitiesOf(l)
	for i := range l.Events {
		e := &l.Events[i]
		for len(chances) > 0 && chances[0] <= e.At {
			writeLine(out, chances[0], " # ", 1500+Overhead)
			chances = chances[1:]
		}
		switch e.Kind {
		case result.Arrival:
			writeLine(out, e.At, " + ", e.Bytes+Overhead)
		case result.Departure:
			writeLine(out, e.At, " - ", e.Bytes+Overhead, int(e.Wait.Milliseconds()))
		case result.Drop:
			writeLine(out, e.At, " d ", 1, e.Bytes+Overhead)
		case result.Opportunity:
			writeLine(out, e.At, " # ", e.Bytes)
		case result.Marked: // mahimahi marks nothing
		}
	}
	return out.Flush()
}

// writeLine writes when, what, and the numbers that go with it. Flush has the error.
func writeLine(out *bufio.Writer, at time.Duration, what string, numbers ...int) {
	b := strconv.AppendInt(out.AvailableBuffer(), at.Milliseconds(), 10)
	b = append(b, what...)
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	_, _ = out.Write(append(b, '\n'))
}

// oneLine keeps a text on its line.
func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// opportunitiesOf are those of a trace of the link's rate, if it has none of its own.
func opportunitiesOf(l *result.LinkRecord) Trace {
	if len(l.Events) == 0 {
		return nil
	}
	for i := range l.Events {
		if l.Events[i].Kind == result.Opportunity {
			return nil
		}
	}
	end := l.Events[len(l.Events)-1].At
	points := l.Rates
	if len(points) == 0 {
		points = []result.Point{{Value: l.Rate}}
	}
	var steps []Step
	for i, p := range points {
		until := end
		if i+1 < len(points) {
			until = min(end, points[i+1].At)
		}
		if until > p.At {
			steps = append(steps, Step{int64(math.Round(p.Value)), until - p.At})
		}
	}
	t, err := Steps(steps...)
	if err != nil {
		return nil // it has no rate, or one without a packet in all that time
	}
	return t
}

// maxLog bounds the lines of a log.
const maxLog = 50_000_000

// ReadLog reads a log of mm-link, with drops or without, or one of Pantheon's tunnels, whose times
// have fractions and whose lines end with the number of a flow. Times are counted from the log's
// base. Errors are of type *Error.
func ReadLog(name string, r io.Reader) (*result.LinkRecord, error) {
	l := &result.LinkRecord{Name: "down"}
	base, line := 0.0, 0
	in := bufio.NewScanner(r)
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		if comment, ok := strings.CutPrefix(text, "#"); ok {
			heed(l, comment, &base)
			continue
		}
		e, err := event(text, base)
		if err == nil && len(l.Events) > 0 && e.At < l.Events[len(l.Events)-1].At {
			err = fmt.Errorf("%v comes behind %v: times are in order", e.At,
				l.Events[len(l.Events)-1].At)
		}
		if err == nil && line > maxLog {
			err = fmt.Errorf("more than %d lines", maxLog)
		}
		if err != nil {
			return nil, &Error{File: name, Line: line, Msg: err.Error()}
		}
		l.Events = append(l.Events, e)
	}
	if err := in.Err(); err != nil {
		return nil, &Error{File: name, Line: line + 1, Msg: err.Error()}
	}
	if len(l.Events) == 0 {
		return nil, &Error{File: name, Msg: "no events: want lines such as 12 + 1504"}
	}
	fillIn(l)
	return l, nil
}

// heed takes from a comment what it says of the log.
func heed(l *result.LinkRecord, comment string, base *float64) {
	key, value, _ := strings.Cut(strings.TrimSpace(comment), ":")
	switch {
	case key == "base timestamp":
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && usual(v) {
			*base = v
		}
	case strings.HasPrefix(key, "mahimahi mm-link (Uplink)"):
		l.Name = "up"
	}
}

// usual reports whether a number of milliseconds can be one.
func usual(ms float64) bool { return math.Abs(ms) < 1e12 }

// event reads a line.
func event(text string, base float64) (result.LinkEvent, error) {
	f := strings.Fields(text)
	e := result.LinkEvent{Flow: -1}
	const want = "want a time in ms, one of + - # d, and numbers"
	if len(f) < 3 || len(f) > 5 || len(f[1]) != 1 {
		return e, fmt.Errorf("%.60q: %s", text, want)
	}
	ms, err := strconv.ParseFloat(f[0], 64)
	if err != nil || !usual(ms) {
		return e, fmt.Errorf("%.40q is not a time in milliseconds", f[0])
	}
	e.At = max(0, span(ms-base))
	numbers := make([]float64, len(f)-2)
	for i, s := range f[2:] {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil || !(v >= 0) || v >= 1e12 {
			return e, fmt.Errorf("%.40q is not a number", s)
		}
		numbers[i] = v
	}
	e.Bytes = int(numbers[0])
	flow := 1
	switch e.Kind = result.LinkEventKind(f[1][0]); e.Kind {
	case result.Arrival, result.Opportunity:
	case result.Departure:
		flow = 2
		if len(numbers) < 2 {
			return e, fmt.Errorf("%.60q: a departure has its bytes and its delay in ms", text)
		}
		e.Wait = span(numbers[1])
	case result.Drop:
		flow = 2
		if len(numbers) < 2 {
			return e, fmt.Errorf("%.60q: a drop has its packets and its bytes", text)
		}
		e.Bytes, e.Why = int(numbers[1]), "drop"
	case result.Marked:
		fallthrough
	default:
		return e, fmt.Errorf("%q: %s", f[1], want)
	}
	if len(numbers) > flow {
		e.Flow = int(numbers[flow])
	}
	return e, nil
}

func span(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

// fillIn adds what lines do not say: what is queued, and the mean rate.
func fillIn(l *result.LinkRecord) {
	queued, capacity := 0, 0.0
	for i := range l.Events {
		e := &l.Events[i]
		switch e.Kind {
		case result.Arrival:
			queued += e.Bytes
		case result.Departure, result.Drop:
			queued = max(0, queued-e.Bytes)
		case result.Opportunity:
			capacity += float64(e.Bytes)
		case result.Marked:
		}
		e.Queued = queued
	}
	if end := l.Events[len(l.Events)-1].At; end > 0 {
		l.Rate = 8 * capacity / end.Seconds()
	}
}
