package play

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/script"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// tcpConfig is how both ends of a flow speak TCP.
func (f *flow) tcpConfig() (tcp.Config, error) {
	cfg := f.TCP
	if f.Protocol != plan.TCP || f.Ssthresh == 0 && f.Script == nil {
		return cfg, nil
	}
	name := f.algorithm()
	var create congestion.Make
	var err error
	if f.Script != nil {
		create = f.run.script(f.Script).New
	} else if create, err = congestion.Find(cfg.Algorithms, name); err != nil {
		return cfg, err
	}
	cfg.Algorithms = map[string]congestion.Make{name: f.bounded(create)}
	return cfg, nil
}

// script returns the run of a program, which is one for all flows that have it. Its first error
// ends the run.
func (r *run) script(p *script.Program) *script.Run {
	if begun := r.scripts[p]; begun != nil {
		return begun
	}
	if r.scripts == nil {
		r.scripts = map[*script.Program]*script.Run{}
	}
	r.scripts[p] = p.Begin(script.Hooks{
		Failed: r.fail,
		Printed: func(now clock.Time, line string) {
			if r.printed != nil {
				r.printed(r.since(max(now, r.began)), line)
			}
		},
	})
	return r.scripts[p]
}

// algorithm is the name of the flow's congestion control.
func (f *flow) algorithm() string {
	if f.TCP.Congestion == "" {
		return "cubic"
	}
	return f.TCP.Congestion
}

// bounded has an algorithm begin with the flow's slow start threshold.
func (f *flow) bounded(create congestion.Make) congestion.Make {
	return func(cfg congestion.Config) congestion.Controller {
		if cfg.Ssthresh == 0 && f.Ssthresh > 0 {
			cfg.Ssthresh = f.Ssthresh * cfg.MSS
		}
		return create(cfg)
	}
}
