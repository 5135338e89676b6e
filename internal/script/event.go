package script

import (
	"fmt"
	"strings"
	"time"

	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// event shows a struct of package congestion to a script. It is the same value in each call
// of a connection and is lent for the call, as the struct is.
type event[T any] struct {
	name   string
	fields []field[T]
	of     *T         // nil between calls
	began  clock.Time // when the connection's first event was: the zero of the script's time
}

// field is an attribute of an event.
type field[T any] struct {
	name string
	get  func(of *T, began clock.Time) starlark.Value
}

var ackFields = []field[congestion.Ack]{
	instant("now", func(a *congestion.Ack) clock.Time { return a.Now }),
	integer("delivered", func(a *congestion.Ack) int { return a.Delivered }),
	flag("cwnd_limited", func(a *congestion.Ack) bool { return a.CwndLimited }),
	flag("recovering", func(a *congestion.Ack) bool { return a.Recovering }),
	integer("mss", func(a *congestion.Ack) int { return a.MSS }),
	flag("round", func(a *congestion.Ack) bool { return a.Round }),
	measurement("rtt", func(a *congestion.Ack) time.Duration { return a.RTT }),
	measurement("min_rtt", func(a *congestion.Ack) time.Duration { return a.MinRTT }),
	measurement("srtt", func(a *congestion.Ack) time.Duration { return a.SRTT }),
	integer("prior", func(a *congestion.Ack) int { return a.Prior }),
	integer("in_flight", func(a *congestion.Ack) int { return a.InFlight }),
	integer("lost", func(a *congestion.Ack) int { return a.Lost }),
	{"rate", func(a *congestion.Ack, _ clock.Time) starlark.Value {
		if a.Rate == 0 {
			return starlark.None
		}
		return starlark.MakeInt64(a.Rate)
	}},
	flag("app_limited", func(a *congestion.Ack) bool { return a.AppLimited }),
	total("total_delivered", func(a *congestion.Ack) uint64 { return a.TotalDelivered }),
	total("prior_delivered", func(a *congestion.Ack) uint64 { return a.PriorDelivered }),
	integer("tx_in_flight", func(a *congestion.Ack) int { return a.TxInFlight }),
	integer("lost_since", func(a *congestion.Ack) int { return a.LostSince }),
}

// kinds are the constants that loss.kind is compared with.
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

// ending is an Exit with what the window was before its episode.
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
}

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

// instant is in seconds since the connection's first event.
func instant[T any](name string, get func(*T) clock.Time) field[T] {
	return field[T]{name, func(of *T, began clock.Time) starlark.Value {
		return seconds(get(of).Sub(began))
	}}
}

func span[T any](name string, get func(*T) time.Duration) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value { return seconds(get(of)) }}
}

// measurement is a span of which zero means that there is none.
func measurement[T any](name string, get func(*T) time.Duration) field[T] {
	return field[T]{name, func(of *T, _ clock.Time) starlark.Value {
		if d := get(of); d != 0 {
			return seconds(d)
		}
		return starlark.None
	}}
}

// seconds is one rounded division, so it gives the same number everywhere.
func seconds(d time.Duration) starlark.Value { return starlark.Float(float64(d) / 1e9) }

// Attr implements starlark.HasAttrs.
func (e *event[T]) Attr(name string) (starlark.Value, error) {
	if e.of == nil {
		return nil, fmt.Errorf("%s.%s: an event is lent for the call: want what is needed of "+
			"it kept as an attribute of state", e.name, name)
	}
	for i := range e.fields {
		if e.fields[i].name == name {
			return e.fields[i].get(e.of, e.began), nil
		}
	}
	return nil, nil // Starlark says so, and what is near
}

// AttrNames implements starlark.HasAttrs.
func (e *event[T]) AttrNames() []string {
	var names []string
	for i := range e.fields {
		names = append(names, e.fields[i].name)
	}
	return names
}

// String shows all attributes: what print says.
func (e *event[T]) String() string {
	if e.of == nil {
		return e.name + "()"
	}
	var b strings.Builder
	for i := range e.fields {
		f := &e.fields[i]
		fmt.Fprintf(&b, "%s%s = %v", separator(i), f.name, f.get(e.of, e.began))
	}
	return e.name + "(" + b.String() + ")"
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ", "
}

// Type implements starlark.Value.
func (e *event[T]) Type() string { return e.name }

// Freeze implements starlark.Value.
func (e *event[T]) Freeze() {}

// Truth implements starlark.Value.
func (e *event[T]) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (e *event[T]) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: %s", e.name) }
