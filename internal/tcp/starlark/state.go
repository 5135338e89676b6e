package starlark

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// state is the state of a connection: window, threshold, pacing rate, the attributes that the
// script's init added, and a byte count (acked), which is reset when the built-in algorithms reset
// theirs.
type state struct {
	cwnd, ssthresh, rate quantity
	acked                starlark.Value

	names   []string // the script's own attributes, in the order of creation
	values  []starlark.Value
	growing bool // one of values is not a plain number, so it can grow

	mss, max int  // minimum and maximum of the window
	opening  bool // init is running and may create attributes
}

// quantity is a number of bytes: the value that the script set, and the rounded value in use.
type quantity struct {
	value starlark.Value
	n     int64
}

// The attributes that every state has.
const (
	nameCwnd     = "cwnd"
	nameSsthresh = "ssthresh"
	nameRate     = "pacing_rate"
	nameAcked    = "acked"
)

var builtinNames = []string{nameCwnd, nameSsthresh, nameRate, nameAcked}

func bytesOf(n int) quantity { return quantity{value: starlark.MakeInt(n), n: int64(n)} }

// Attr implements starlark.HasAttrs.
func (s *state) Attr(name string) (starlark.Value, error) {
	switch name {
	case nameCwnd:
		return s.cwnd.value, nil
	case nameSsthresh:
		return s.ssthresh.value, nil
	case nameRate:
		return s.rate.value, nil
	case nameAcked:
		return s.acked, nil
	}
	if i := slices.Index(s.names, name); i >= 0 {
		return s.values[i], nil
	}
	return nil, nil // Starlark reports the error and suggests similar names
}

// SetField implements starlark.HasSetField.
func (s *state) SetField(name string, v starlark.Value) error {
	switch name {
	case nameCwnd:
		return s.setCwnd(v)
	case nameSsthresh:
		return set(&s.ssthresh, "state.ssthresh", v)
	case nameRate:
		return set(&s.rate, "state.pacing_rate", v)
	case nameAcked:
		if _, err := number("state.acked", v); err != nil {
			return err
		}
		s.acked = v
		return nil
	}
	return s.setOwn(name, v)
}

// setCwnd sets the window. It is at least a segment or the current window, whichever is less, so
// that sending never stops, and at most the maximum.
func (s *state) setCwnd(v starlark.Value) error {
	least := min(s.cwnd.n, int64(s.mss))
	if err := set(&s.cwnd, "state.cwnd", v); err != nil {
		return err
	}
	switch {
	case s.cwnd.n < least:
		s.cwnd = bytesOf(int(least))
	case s.cwnd.n > int64(s.max):
		s.cwnd = bytesOf(s.max)
	}
	return nil
}

// setOwn sets an attribute of the script. Only init creates attributes, so that a misspelled name
// is an error.
func (s *state) setOwn(name string, v starlark.Value) error {
	i := slices.Index(s.names, name)
	if i < 0 {
		if !s.opening {
			return fmt.Errorf("state has no attribute %s%s; init creates new attributes", name,
				diagnostic.DidYouMean(name, s.AttrNames()))
		}
		// Short names are similar to everything, so only the long ones are suggested.
		if near := diagnostic.DidYouMean(name, []string{nameSsthresh, nameRate}); near != "" {
			return fmt.Errorf("state.%s%s", name, near)
		}
		if len(s.names) == maxAttributes {
			return fmt.Errorf("state.%s: state has at most %d attributes", name, maxAttributes)
		}
		s.names, s.values, i = append(s.names, name), append(s.values, nil), len(s.names)
	}
	s.values[i] = v
	switch v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Float:
	case starlark.Int:
		if what := tooLarge(v); what != "" {
			return fmt.Errorf("state.%s holds %s", name, what)
		}
	default:
		s.growing = true
	}
	return nil
}

// set sets q to v, if v is a valid number.
func set(q *quantity, what string, v starlark.Value) error {
	n, err := number(what, v)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%s = %v: must be a number, 0 or more", what, v)
	}
	*q = quantity{value: v, n: int64(min(n, 1<<62))}
	if n > 0 && q.n == 0 {
		q.n = 1 // zero would mean that the value is not set
	}
	return nil
}

// number returns v as a float64, or an error if v is not a finite number.
func number(what string, v starlark.Value) (float64, error) {
	switch n := v.(type) {
	case starlark.Int:
		if i, ok := n.Int64(); ok && i <= 1<<53 && i >= -1<<53 {
			return float64(i), nil
		}
		return 0, fmt.Errorf("%s = %v: must be a number of at most 2⁵³", what, brief(v))
	case starlark.Float:
		if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
			return 0, fmt.Errorf("%s = %v: must be a finite number", what, v)
		}
		return float64(n), nil
	}
	return 0, fmt.Errorf("%s = %s, which is of type %s: must be a number", what, brief(v), v.Type())
}

// brief formats a value for a message.
func brief(v starlark.Value) string {
	if what := tooLarge(v); what != "" {
		return what
	}
	text := v.String()
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// overfull counts the values in state. It returns an error text if they are too large, or have a
// type that cannot be stored.
func (s *state) overfull() string {
	if !s.growing {
		return ""
	}
	var all contents
	s.growing = false
	for i, v := range s.values {
		if what := all.count(v, 0); what != "" {
			return "state." + s.names[i] + " holds " + what
		}
		switch v.(type) {
		case *starlark.List, starlark.Tuple, *starlark.Dict:
			s.growing = true
		}
	}
	return ""
}

// AttrNames implements starlark.HasAttrs.
func (s *state) AttrNames() []string { return slices.Concat(builtinNames, s.names) }

// String returns all attributes.
func (s *state) String() string {
	var attributes []string
	for _, name := range s.AttrNames() {
		v, _ := s.Attr(name)
		attributes = append(attributes, name+" = "+brief(v))
	}
	return "state(" + strings.Join(attributes, ", ") + ")"
}

// Type implements starlark.Value.
func (s *state) Type() string { return "state" }

// Freeze implements starlark.Value. It does nothing: a state belongs to one connection and stays
// mutable.
func (s *state) Freeze() {}

// Truth implements starlark.Value.
func (s *state) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (s *state) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: state") }
