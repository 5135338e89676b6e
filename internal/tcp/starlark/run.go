package starlark

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Hooks are called during a run. Each may be nil.
type Hooks struct {
	// Failed is called with the run's first error. After that the windows do not change, and the
	// caller should stop the experiment.
	Failed func(error)
	// Printed is called with each line that a script prints, and the time of the event. The time is
	// clock.Never for lines printed during compilation.
	Printed func(now clock.Time, line string)
	// Recorded is called with each number that a script records, and the name of its column.
	Recorded func(name string, value float64)
}

// Run is a program in one run of an experiment: the controllers of all connections that use
// it. It belongs to the owner of those connections.
type Run struct {
	program *Program
	hooks   Hooks
	err     error
	printed int
	columns []string // columns that the script has recorded
}

// Begin begins a run.
func (p *Program) Begin(h Hooks) *Run {
	r := &Run{program: p, hooks: h}
	for _, line := range p.notes {
		r.print(clock.Never, line)
	}
	return r
}

// Err returns the run's first error, an *Error, or nil.
func (r *Run) Err() error { return r.err }

// New creates the controller of a connection. It is a congestion.Make.
func (r *Run) New(cfg congestion.Config) congestion.Controller { return newController(r, cfg) }

func (r *Run) fail(err error) {
	if r.err != nil {
		return
	}
	r.err = err
	if r.hooks.Failed != nil {
		r.hooks.Failed(err)
	}
}

// record passes a number to the hooks. It limits the number of columns.
func (r *Run) record(name string, value float64) error {
	if !slices.Contains(r.columns, name) {
		if what := badName(name); what != "" {
			return fmt.Errorf("record(%q): %s", name, what)
		}
		if len(r.columns) == maxColumns {
			return fmt.Errorf("record(%q): a script records at most %d columns; it already has %s",
				name, maxColumns, strings.Join(r.columns, ", "))
		}
		r.columns = append(r.columns, name)
	}
	if r.hooks.Recorded != nil {
		r.hooks.Recorded(name, value)
	}
	return nil
}

func (r *Run) print(now clock.Time, line string) {
	if r.hooks.Printed == nil || r.printed > maxPrints {
		return
	}
	if r.printed++; r.printed > maxPrints {
		line = fmt.Sprintf("print: more than %d lines; the rest is dropped", maxPrints)
	}
	r.hooks.Printed(now, line)
}
