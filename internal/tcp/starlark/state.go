package starlark

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"go.starlark.net/starlark"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// state is a connection's memory: the three numbers that govern it, a count that the house
// sets to zero where its own algorithms do, and what the script's init has added.
type state struct {
	cwnd, ssthresh, rate quantity
	acked                starlark.Value

	names  []string // the script's own, in the order in which they were made
	values []starlark.Value
	heaps  bool // one of them can grow: not only plain numbers

	mss, max int  // what a window lies between
	opening  bool // init runs: attributes may be made
}

// quantity is a number of bytes, as the script has it and as it counts.
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

var houseNames = []string{nameCwnd, nameSsthresh, nameRate, nameAcked}

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
	return nil, nil // Starlark reports it and suggests similar names
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

// setCwnd sets the window, which is never reduced to less than a segment, for nothing would
// ever leave again, and never more than the largest one.
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

// setOwn sets an attribute of the script's own. A new one is made by init alone, so that a
// name that was mistyped does not become one.
func (s *state) setOwn(name string, v starlark.Value) error {
	i := slices.Index(s.names, name)
	if i < 0 {
		if !s.opening {
			return fmt.Errorf("state has no attribute %s%s; new ones are made in init", name,
				diagnostic.DidYouMean(name, s.AttrNames()))
		}
		// Short names are too near to everything to tell what was meant.
		if near := diagnostic.DidYouMean(name, []string{nameSsthresh, nameRate}); near != "" {
			return fmt.Errorf("state.%s%s", name, near)
		}
		if len(s.names) == maxAttributes {
			return fmt.Errorf("state.%s: want at most %d attributes", name, maxAttributes)
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
		s.heaps = true
	}
	return nil
}

// set gives q the value of v, if that is a number that can be meant.
func set(q *quantity, what string, v starlark.Value) error {
	n, err := number(what, v)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%s = %v: want a number, 0 or more", what, v)
	}
	*q = quantity{value: v, n: int64(min(n, 1<<62))}
	if n > 0 && q.n == 0 {
		q.n = 1 // zero means something else: none
	}
	return nil
}

// number returns the value of a finite number.
func number(what string, v starlark.Value) (float64, error) {
	switch n := v.(type) {
	case starlark.Int:
		if i, ok := n.Int64(); ok && i <= 1<<53 && i >= -1<<53 {
			return float64(i), nil
		}
		return 0, fmt.Errorf("%s = %v: want a number of at most 2⁵³", what, brief(v))
	case starlark.Float:
		if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
			return 0, fmt.Errorf("%s = %v: want a finite number", what, v)
		}
		return float64(n), nil
	}
	return 0, fmt.Errorf("%s = %s, which is of type %s: want a number", what, brief(v), v.Type())
}

// brief is a value as a message shows it.
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

// overfull counts all that is in state and tells if it is too much, or not for keeping.
func (s *state) overfull() string {
	if !s.heaps {
		return ""
	}
	var all census
	s.heaps = false
	for i, v := range s.values {
		if what := all.count(v, 0); what != "" {
			return "state." + s.names[i] + " holds " + what
		}
		switch v.(type) {
		case *starlark.List, starlark.Tuple, *starlark.Dict:
			s.heaps = true
		}
	}
	return ""
}

// AttrNames implements starlark.HasAttrs.
func (s *state) AttrNames() []string { return slices.Concat(houseNames, s.names) }

// String shows all attributes.
func (s *state) String() string {
	var b strings.Builder
	for i, name := range s.AttrNames() {
		v, _ := s.Attr(name)
		fmt.Fprintf(&b, "%s%s = %s", separator(i), name, brief(v))
	}
	return "state(" + b.String() + ")"
}

// Type implements starlark.Value.
func (s *state) Type() string { return "state" }

// Freeze implements starlark.Value: a state is its connection's alone and stays open.
func (s *state) Freeze() {}

// Truth implements starlark.Value.
func (s *state) Truth() starlark.Bool { return true }

// Hash implements starlark.Value.
func (s *state) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: state") }
