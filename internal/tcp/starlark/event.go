package starlark

import (
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// event exposes a struct of package congestion to a script. All calls of a connection share one
// value, which is valid only during a call, like the struct.
type event[T any] struct {
	name   string
	fields []field[T]
	of     *T         // nil between calls
	began  clock.Time // time of the connection's first event: zero for the script
}

// field is an attribute of an event.
type field[T any] struct {
	name string
	get  func(of *T, began clock.Time) starlark.Value
}

// arrival is an Ack, with the Transit of the connection's first timestamped Ack for comparison. The
// difference between the hosts' clocks is unknown but constant, so it cancels out.
type arrival struct {
	Ack     *congestion.Ack
	transit uint32
	known   bool
}

func (a *arrival) take(next *congestion.Ack) {
	a.Ack = next
	if next.Stamped && !a.known {
		a.transit, a.known = next.Transit, true
	}
}

var ackFields = []field[arrival]{
	instant("now", func(a *arrival) clock.Time { return a.Ack.Now }),
	integer("delivered", func(a *arrival) int { return a.Ack.Delivered }),
	flag("cwnd_limited", func(a *arrival) bool { return a.Ack.CwndLimited }),
	flag("recovering", func(a *arrival) bool { return a.Ack.Recovering }),
	integer("mss", func(a *arrival) int { return a.Ack.MSS }),
	flag("round", func(a *arrival) bool { return a.Ack.Round }),
	measurement("rtt", func(a *arrival) time.Duration { return a.Ack.RTT }),
	measurement("min_rtt", func(a *arrival) time.Duration { return a.Ack.MinRTT }),
	measurement("srtt", func(a *arrival) time.Duration { return a.Ack.SRTT }),
	integer("prior", func(a *arrival) int { return a.Ack.Prior }),
	integer("in_flight", func(a *arrival) int { return a.Ack.InFlight }),
	integer("lost", func(a *arrival) int { return a.Ack.Lost }),
	{"rate", func(a *arrival, _ clock.Time) starlark.Value {
		if a.Ack.Rate == 0 {
			return starlark.None
		}
		return starlark.MakeInt64(a.Ack.Rate)
	}},
	flag("app_limited", func(a *arrival) bool { return a.Ack.AppLimited }),
	total("total_delivered", func(a *arrival) uint64 { return a.Ack.TotalDelivered }),
	total("prior_delivered", func(a *arrival) uint64 { return a.Ack.PriorDelivered }),
	integer("tx_in_flight", func(a *arrival) int { return a.Ack.TxInFlight }),
	integer("lost_since", func(a *arrival) int { return a.Ack.LostSince }),
	flag("echo", func(a *arrival) bool { return a.Ack.Echo }),
	{"marked", func(a *arrival, _ clock.Time) starlark.Value {
		if a.Ack.Marked == congestion.UnknownMarks {
			return starlark.None
		}
		return starlark.MakeInt(a.Ack.Marked)
	}},
	{"one_way", func(a *arrival, _ clock.Time) starlark.Value {
		if !a.Ack.Stamped {
			return starlark.None
		}
		return seconds(time.Duration(int32(a.Ack.Transit-a.transit)) * time.Millisecond)
	}},
	{"sent_at", func(a *arrival, began clock.Time) starlark.Value {
		if a.Ack.SentAt == clock.Never {
			return starlark.None
		}
		return seconds(a.Ack.SentAt.Sub(began))
	}},
}

// kinds are the values of loss.kind.
var kinds = [...]starlark.Value{
	congestion.Detected:     starlark.String("detected"),
	congestion.Timeout:      starlark.String("timeout"),
	congestion.TimeoutAgain: starlark.String("timeout again"),
	congestion.Echo:         starlark.String("echo"),
}

var lossFields = []field[congestion.Loss]{
	instant("now", func(l *congestion.Loss) clock.Time { return l.Now }),
	{"kind", func(l *congestion.Loss, _ clock.Time) starlark.Value { return kinds[l.Kind] }},
	integer("flight_size", func(l *congestion.Loss) int { return l.FlightSize }),
	integer("in_flight", func(l *congestion.Loss) int { return l.InFlight }),
	integer("mss", func(l *congestion.Loss) int { return l.MSS }),
}

// ending is an Exit with the window before its loss episode.
type ending struct {
	*congestion.Exit
	cwnd, ssthresh starlark.Value
}

var exitFields = []field[ending]{
	instant("now", func(e *ending) clock.Time { return e.Now }),
	integer("in_flight", func(e *ending) int { return e.InFlight }),
	integer("mss", func(e *ending) int { return e.MSS }),
	flag("spurious", func(e *ending) bool { return e.Spurious }),
	integer("ceiling", func(e *ending) int { return e.Ceiling }),
	{"cwnd_before", func(e *ending, _ clock.Time) starlark.Value { return e.cwnd }},
	{"ssthresh_before", func(e *ending, _ clock.Time) starlark.Value { return e.ssthresh }},
}

var restartFields = []field[congestion.Restart]{
	instant("now", func(r *congestion.Restart) clock.Time { return r.Now }),
	span("idle", func(r *congestion.Restart) time.Duration { return r.Idle }),
	span("rto", func(r *congestion.Restart) time.Duration { return r.RTO }),
	flag("unvalidated", func(r *congestion.Restart) bool { return r.Unvalidated }),
	integer("mss", func(r *congestion.Restart) int { return r.MSS }),
}

var segmentFields = []field[congestion.LostSegment]{
	instant("now", func(l *congestion.LostSegment) clock.Time { return l.Now }),
	total("seq", func(l *congestion.LostSegment) uint64 { return l.Seq }),
	integer("size", func(l *congestion.LostSegment) int { return l.Size }),
	integer("tx_in_flight", func(l *congestion.LostSegment) int { return l.TxInFlight }),
	integer("lost_since", func(l *congestion.LostSegment) int { return l.LostSince }),
	flag("app_limited", func(l *congestion.LostSegment) bool { return l.AppLimited }),
	total("total_delivered", func(l *congestion.LostSegment) uint64 { return l.TotalDelivered }),
	instant("sent_at", func(l *congestion.LostSegment) clock.Time { return l.SentAt }),
}

var sentFields = []field[congestion.Sent]{
	instant("now", func(s *congestion.Sent) clock.Time { return s.Now }),
	total("seq", func(s *congestion.Sent) uint64 { return s.Seq }),
	integer("size", func(s *congestion.Sent) int { return s.Size }),
	integer("segments", func(s *congestion.Sent) int { return s.Segments }),
	integer("mss", func(s *congestion.Sent) int { return s.MSS }),
	integer("in_flight", func(s *congestion.Sent) int { return s.InFlight }),
	flag("again", func(s *congestion.Sent) bool { return s.Again }),
}

var timerFields = []field[congestion.Timer]{
	instant("now", func(t *congestion.Timer) clock.Time { return t.Now }),
	integer("mss", func(t *congestion.Timer) int { return t.MSS }),
	integer("in_flight", func(t *congestion.Timer) int { return t.InFlight }),
	total("total_delivered", func(t *congestion.Timer) uint64 { return t.TotalDelivered }),
	total("total_lost", func(t *congestion.Timer) uint64 { return t.TotalLost }),
	measurement("min_rtt", func(t *congestion.Timer) time.Duration { return t.MinRTT }),
	measurement("srtt", func(t *congestion.Timer) time.Duration { return t.SRTT }),
}

// timer is the timer that a script sets.
type timer struct {
	at      clock.Time // Never: off
	expired int        // how often it has expired
}

// set starts the timer. It replaces an earlier deadline.
func (t *timer) set(now clock.Time, after time.Duration) { t.at = now.Add(after) }

func integer[T any](name string, get func(*T) int) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value {
		return starlark.MakeInt(get(of))
	}}
}

func total[T any](name string, get func(*T) uint64) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value {
		return starlark.MakeUint64(get(of))
	}}
}

func flag[T any](name string, get func(*T) bool) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value {
		return starlark.Bool(get(of))
	}}
}

// instant is a time in seconds since the connection's first event.
func instant[T any](name string, get func(*T) clock.Time) field[T] {
	return field[T]{name, func(of *T, began clock.Time) starlark.Value {
		return seconds(get(of).Sub(began))
	}}
}

func span[T any](name string, get func(*T) time.Duration) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value { return seconds(get(of)) }}
}

// measurement is a duration field; scripts see zero as None.
func measurement[T any](name string, get func(*T) time.Duration) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value {
		if d := get(of); d != 0 {
			return seconds(d)
		}
		return starlark.None
	}}
}

// seconds divides by 1e9 with one rounding, so the result is the same on every platform.
func seconds(d time.Duration) starlark.Value { return starlark.Float(float64(d) / 1e9) }

// Attr implements starlark.HasAttrs.
func (e *event[T]) Attr(name string) (starlark.Value, error) {
	if e.of == nil {
		return nil, fmt.Errorf("%s.%s: an event is valid only during its call: copy the "+
			"values that are needed later to state", e.name, name)
	}
	for i := range e.fields {
		if e.fields[i].name == name {
			return e.fields[i].get(e.of, e.began), nil
		}
	}
	return nil, nil // Starlark reports the error and suggests similar names
}

// AttrNames implements starlark.HasAttrs.
func (e *event[T]) AttrNames() []string {
	var names []string
	for i := range e.fields {
		names = append(names, e.fields[i].name)
	}
	return names
}

// String returns all attributes, for print.
func (e *event[T]) String() string {
	var attributes []string
	for i := range e.fields {
		if f := &e.fields[i]; e.of != nil {
			attributes = append(attributes, fmt.Sprintf("%s = %v", f.name, f.get(e.of, e.began)))
		}
	}
	return e.name + "(" + strings.Join(attributes, ", ") + ")"
}

// Type implements starlark.Value.
func (e *event[T]) Type() string { return e.name }

// Freeze implements starlark.Value.
func (e *event[T]) Freeze() {}

// Truth implements starlark.Value.
func (e *event[T]) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (e *event[T]) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: %s", e.name) }
