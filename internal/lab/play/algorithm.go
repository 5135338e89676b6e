package play

import (
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// tcpConfig is how both ends of a flow speak TCP.
func (f *flow) tcpConfig() (tcp.Config, error) {
	cfg := f.TCP
	if f.Protocol != plan.TCP || f.Ssthresh == 0 {
		return cfg, nil
	}
	create, err := congestion.Find(cfg.Algorithms, f.algorithm())
	if err != nil {
		return cfg, err
	}
	cfg.Algorithms = map[string]congestion.Make{f.algorithm(): f.bounded(create)}
	return cfg, nil
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
		if cfg.Ssthresh == 0 {
			cfg.Ssthresh = f.Ssthresh * cfg.MSS
		}
		return create(cfg)
	}
}
