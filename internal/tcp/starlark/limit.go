package starlark

import (
	"fmt"
	"math/bits"
	"time"

	"go.starlark.net/starlark"
)

// These are the limits of a script. They stop errors such as an endless loop, a list that grows
// with every ACK, or a number that is squared repeatedly (product.go). A malicious script can still
// exhaust the memory, for example with str of deeply nested lists.
const (
	// maxSource limits the size of a file in bytes. It also limits the depth of the recursive
	// parser.
	maxSource = 64 << 10
	// maxSteps limits the interpreter steps of a call; typical algorithms take tens.
	maxSteps = 100_000
	// The meter checks a function's variables every firstStride steps, and large variables more
	// often: up to every shortestStride steps. Doubling a variable takes four steps.
	firstStride, shortestStride = 64, 16
	// maxValues and maxBytes limit the size of one variable, and of all of a connection's state.
	maxValues, maxBytes = 1 << 16, 1 << 20
	// maxBits limits the size of an integer.
	maxBits = 4096
	// maxAttributes limits the attributes that a script adds to state.
	maxAttributes = 64
	// maxDepth limits the nesting of lists.
	maxDepth = 16
	// maxPrints limits the number of lines that a run prints, and maxNote their length in bytes.
	maxPrints, maxNote = 10_000, 1000
	// minTimer and maxTimer limit the timer's duration, and maxTimers how often the timer of a
	// connection expires.
	minTimer, maxTimer = 10 * time.Microsecond, time.Hour
	maxTimers          = 1_000_000
	// maxColumns limits the number of columns that a run records, maxParams the number of a
	// script's parameters, and maxName the length of the names of both.
	maxColumns, maxParams, maxName = 16, 64, 32
)

// meter enforces the limits on a thread's calls.
type meter struct {
	state *state // the state whose attributes count; nil while a file is compiled
	end   uint64 // the step at which the current call is too long
}

// attach makes the interpreter call the meter at intervals.
func (m *meter) attach(thread *starlark.Thread) { thread.OnMaxSteps = m.check }

func (m *meter) begin(thread *starlark.Thread) {
	now := thread.ExecutionSteps()
	m.end = now + maxSteps
	thread.SetMaxExecutionSteps(now + firstStride)
}

func (m *meter) check(t *starlark.Thread) {
	now := t.ExecutionSteps()
	if now >= m.end {
		t.Cancel(fmt.Sprintf("more than %d steps in one call: look for an endless loop", maxSteps))
		return
	}
	largest, what := m.grown(t)
	if what != "" {
		t.Cancel(what)
		return
	}
	next := max(shortestStride, firstStride-4*bits.Len(uint(largest)))
	t.SetMaxExecutionSteps(min(m.end, now+uint64(next)))
}

// grown returns the size of the largest variable, and an error text if it exceeds its limit.
func (m *meter) grown(t *starlark.Thread) (largest int, what string) {
	see := func(name string, v starlark.Value) {
		if n, most := extent(v); n > largest {
			if largest = n; n > most {
				what = name + " holds " + tooLarge(v)
			}
		}
	}
	frame := t.DebugFrame(0)
	for i := range frame.NumLocals() {
		if name, v := frame.Local(i); v != nil {
			see(name.Name, v)
		}
	}
	if m.state != nil {
		for i, v := range m.state.values {
			see("state."+m.state.names[i], v)
		}
	} else if f, ok := frame.Callable().(*starlark.Function); ok {
		globals := f.Globals()
		for _, name := range globals.Keys() {
			see(name, globals[name])
		}
	}
	return largest, what
}

// extent returns the size of a value, without the contents of its elements, and the limit.
func extent(v starlark.Value) (n, most int) {
	switch v := v.(type) {
	case starlark.Int:
		if _, ok := v.Int64(); ok {
			return 0, maxBits
		}
		return v.BigInt().BitLen(), maxBits
	case starlark.String:
		return len(v), maxBytes
	case starlark.Bytes:
		return len(v), maxBytes
	case starlark.Sequence:
		return v.Len(), maxValues
	}
	return 0, 0
}

// tooLarge describes a value whose extent exceeds its limit. It returns "" for other values.
func tooLarge(v starlark.Value) string {
	n, most := extent(v)
	if n <= most {
		return ""
	}
	switch v.(type) {
	case starlark.Int:
		return fmt.Sprintf("an integer of %d bits: must be at most %d", n, most)
	case starlark.String, starlark.Bytes:
		return fmt.Sprintf("a string of %d bytes: must be at most %d", n, most)
	}
	return fmt.Sprintf("%d values: must be at most %d", n, most)
}

// contents counts values and bytes, recursively.
type contents struct{ values, bytes int }

// count adds a value, and returns an error text if it is too large, nested too deep, or of a type
// that cannot be stored.
func (c *contents) count(v starlark.Value, depth int) string {
	if c.values++; c.values > maxValues || c.bytes > maxBytes {
		return fmt.Sprintf("more than %d values or %d bytes", maxValues, maxBytes)
	}
	if depth > maxDepth {
		return fmt.Sprintf("lists nested more than %d deep", maxDepth)
	}
	if what := tooLarge(v); what != "" {
		return what
	}
	switch v := v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int, starlark.Float, *conn:
	case starlark.String:
		c.bytes += len(v)
	case *starlark.List:
		return c.all(v, depth)
	case starlark.Tuple:
		return c.all(v, depth)
	case *starlark.Dict:
		for _, item := range v.Items() {
			if what := c.all(item, depth); what != "" {
				return what
			}
		}
	case *starlark.Function:
		if v.NumFreeVars() > 0 || v.NumParams() > 0 && hasDefaults(v) {
			return "a function with captured or default values: must be a plain function"
		}
	default:
		return fmt.Sprintf("a value of type %s: must be numbers, strings, lists and dicts: "+
			"other values are valid only during the call", v.Type())
	}
	return ""
}

func (c *contents) all(list starlark.Indexable, depth int) string {
	for i := range list.Len() {
		if what := c.count(list.Index(i), depth+1); what != "" {
			return what
		}
	}
	return ""
}

func hasDefaults(f *starlark.Function) bool {
	for i := range f.NumParams() {
		if f.ParamDefault(i) != nil {
			return true
		}
	}
	return false
}

// note truncates a printed line to the limit.
func note(text string) string {
	if len(text) > maxNote {
		return text[:maxNote] + " …"
	}
	return text
}
