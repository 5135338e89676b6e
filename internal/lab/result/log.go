package result

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/netem"
)

// LogHeader is the comment at the start of a log.
type LogHeader struct {
	// Link is "Downlink" or "Uplink". Trace is the trace's name or the rate, Queue is the queue.
	Link, Trace, Queue string
	// Command is the command line, and Note is a remark for the reader.
	Command, Note string
}

// WriteLog writes the record as a log of mahimahi's mm-link, whose packet sizes include
// netem.OpportunityOverhead. If the record has no opportunities because the link's rate is a
// number, the log gets the opportunities of a trace of that rate: other programs compute the
// capacity from them.
func (l *LinkRecord) WriteLog(w io.Writer, h LogHeader) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# mahimahi mm-link (%s) [%s] > log\n# command line: %s\n# queue: %s\n",
		oneLine(h.Link), oneLine(h.Trace), oneLine(h.Command), oneLine(h.Queue))
	if h.Note != "" {
		fmt.Fprintf(out, "# note: %s\n", oneLine(h.Note))
	}
	fmt.Fprint(out, "# init timestamp: 0\n# base timestamp: 0\n")
	next := 0 // index of the next event
	for at := range l.opportunities() {
		for ; next < len(l.Events) && l.Events[next].At < at; next++ {
			l.Events[next].WriteLine(out)
		}
		writeLine(out, at, " # ", netem.OpportunityBytes)
	}
	for ; next < len(l.Events); next++ {
		l.Events[next].WriteLine(out)
	}
	return out.Flush()
}

// WriteLine writes the event as a line of a log of mm-link, with the time since the log's start.
func (e *LinkEvent) WriteLine(out *bufio.Writer) {
	const overhead = netem.OpportunityOverhead
	switch e.Kind {
	case Arrival:
		writeLine(out, e.At, " + ", e.Bytes+overhead)
	case Departure:
		writeLine(out, e.At, " - ", e.Bytes+overhead, int(e.Wait.Milliseconds()))
	case Drop:
		writeLine(out, e.At, " d ", 1, e.Bytes+overhead)
	case Opportunity:
		writeLine(out, e.At, " # ", e.Bytes)
	case Marked: // the log's format has no ECN marks
	}
}

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

// opportunities returns the opportunities of a trace of the link's rate, or none if the record has
// its own.
func (l *LinkRecord) opportunities() iter.Seq[time.Duration] {
	none := func(func(time.Duration) bool) {}
	if len(l.Events) == 0 || slices.ContainsFunc(l.Events, func(e LinkEvent) bool {
		return e.Kind == Opportunity
	}) {
		return none
	}
	lap := netem.Schedule{Every: l.Events[len(l.Events)-1].At}
	points := l.Rates
	if len(points) == 0 {
		points = []Point{{Value: l.Rate}}
	}
	for _, p := range points {
		if p.At < lap.Every {
			rate := netem.BitsPerSecond(math.Round(p.Value))
			lap.Steps = append(lap.Steps, netem.Step{At: p.At, Rate: rate})
		}
	}
	times, err := lap.Times()
	if err != nil {
		return none // too slow for a single packet
	}
	return times
}

const maxLog = 50_000_000

// ReadLog reads a log of mm-link, with or without drops, or of one of Pantheon's tunnels, whose
// times have fractions and whose lines end with a flow number. Times are relative to the log's base
// timestamp. Errors are of type *diagnostic.Error.
func ReadLog(name string, r io.Reader) (*LinkRecord, error) {
	l := &LinkRecord{Name: "down"}
	base, line := 0.0, 0
	in := bufio.NewScanner(r)
	for in.Scan() {
		line++
		text := strings.TrimSpace(in.Text())
		if text == "" {
			continue
		}
		if comment, ok := strings.CutPrefix(text, "#"); ok {
			l.readComment(comment, &base)
			continue
		}
		e, err := parseEvent(text, base)
		if err == nil && len(l.Events) > 0 && e.At < l.Events[len(l.Events)-1].At {
			err = fmt.Errorf("%v follows %v: times must be in ascending order", e.At,
				l.Events[len(l.Events)-1].At)
		}
		if err == nil && line > maxLog {
			err = fmt.Errorf("more than %d lines", maxLog)
		}
		if err != nil {
			return nil, &diagnostic.Error{File: name, Line: line, Msg: err.Error()}
		}
		l.Events = append(l.Events, e)
	}
	if err := in.Err(); err != nil {
		return nil, &diagnostic.Error{File: name, Line: line + 1, Msg: err.Error()}
	}
	if len(l.Events) == 0 {
		return nil, &diagnostic.Error{File: name, Msg: "no events", Want: "lines such as 12 + 1504"}
	}
	l.fillIn()
	return l, nil
}

func (l *LinkRecord) readComment(comment string, base *float64) {
	key, value, _ := strings.Cut(strings.TrimSpace(comment), ":")
	switch {
	case key == "base timestamp":
		if v, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && plausible(v) {
			*base = v
		}
	case strings.HasPrefix(key, "mahimahi mm-link (Uplink)"):
		l.Name = "up"
	}
}

func plausible(ms float64) bool { return math.Abs(ms) < 1e12 }

func parseEvent(text string, base float64) (LinkEvent, error) {
	f := strings.Fields(text)
	e := LinkEvent{Flow: -1}
	const want = "must be a time in ms, one of + - # d, and numbers"
	if len(f) < 3 || len(f) > 5 || len(f[1]) != 1 {
		return e, fmt.Errorf("%.60q: %s", text, want)
	}
	ms, err := strconv.ParseFloat(f[0], 64)
	if err != nil || !plausible(ms) {
		return e, fmt.Errorf("%.40q is not a time in milliseconds", f[0])
	}
	e.At = max(0, ofMilliseconds(ms-base))
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
	switch e.Kind = LinkEventKind(f[1][0]); e.Kind {
	case Arrival, Opportunity:
	case Departure:
		flow = 2
		if len(numbers) < 2 {
			return e, fmt.Errorf("%.60q: a departure must have its bytes and its delay in ms", text)
		}
		e.Wait = ofMilliseconds(numbers[1])
	case Drop:
		flow = 2
		if len(numbers) < 2 {
			return e, fmt.Errorf("%.60q: a drop must have its packets and its bytes", text)
		}
		e.Bytes, e.Why = int(numbers[1]), "drop"
	case Marked:
		fallthrough
	default:
		return e, fmt.Errorf("%.60q: %s", text, want)
	}
	if len(numbers) > flow {
		e.Flow = int(numbers[flow])
	}
	return e, nil
}

func ofMilliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(ms * float64(time.Millisecond)))
}

// fillIn computes the values that the log's lines lack: the queue's length and the mean rate.
func (l *LinkRecord) fillIn() {
	queued, capacity := 0, 0.0
	for i := range l.Events {
		e := &l.Events[i]
		switch e.Kind {
		case Arrival:
			queued += e.Bytes
		case Departure, Drop:
			queued = max(0, queued-e.Bytes)
		case Opportunity:
			capacity += float64(e.Bytes)
		case Marked:
		}
		e.Queued = queued
	}
	if end := l.Events[len(l.Events)-1].At; end > 0 {
		l.Rate = 8 * capacity / end.Seconds()
	}
}
