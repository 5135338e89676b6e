package play

import (
	"fmt"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/gauge"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/script"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// tcpConfig is how a flow's end on one side speaks TCP. The first error of a script ends the
// run. What it prints and records is the sender's: the other end sends no data.
func (f *flow) tcpConfig(s gauge.Side) (tcp.Config, error) {
	h := script.Hooks{
		Failed: func(err error) { f.run.fail(fmt.Errorf("flow %s: %w", f.Name, err)) },
	}
	if (s == gauge.Left) == f.Upward {
		return TCPConfig(f.Flow, h)
	}
	if to := f.run.printed; to != nil {
		h.Printed = func(_ clock.Time, line string) {
			to(f.run.since(f.run.Now()), f.Name+": "+line)
		}
	}
	h.Recorded = func(name string, value float64) {
		if f.tape != nil {
			f.tape.Own(name, value)
		}
	}
	return TCPConfig(f.Flow, h)
}

// TCPConfig is how an end of a flow speaks TCP. Hooks are for its Starlark file, if it has one.
func TCPConfig(f *plan.Flow, h script.Hooks) (tcp.Config, error) {
	cfg := f.TCP
	if f.Protocol != plan.TCP || f.Ssthresh == 0 && f.Script == nil {
		return cfg, nil
	}
	name := algorithm(f)
	var create congestion.Make
	var err error
	if f.Script != nil {
		create = f.Script.Begin(h).New
	} else if create, err = congestion.Find(cfg.Algorithms, name); err != nil {
		return cfg, err
	}
	cfg.Algorithms = map[string]congestion.Make{name: bounded(f, create)}
	return cfg, nil
}

// algorithm is the name of a flow's congestion control.
func algorithm(f *plan.Flow) string {
	if f.TCP.Congestion == "" {
		return "cubic"
	}
	return f.TCP.Congestion
}

// bounded has an algorithm begin with a flow's slow start threshold.
func bounded(f *plan.Flow, create congestion.Make) congestion.Make {
	return func(cfg congestion.Config) congestion.Controller {
		if cfg.Ssthresh == 0 && f.Ssthresh > 0 {
			cfg.Ssthresh = f.Ssthresh * cfg.MSS
		}
		return create(cfg)
	}
}
