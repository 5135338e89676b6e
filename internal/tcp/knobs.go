package tcp

import (
	"time"

	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
)

// Knobs are what an operator may change while a host runs. They are for the
// connections opened afterwards.
type Knobs struct {
	Congestion string // the algorithm's name
	NoDelay    bool   // Nagle's algorithm is off
	OptionsOff bool   // plain headers
}

// Knobs returns the knobs as they are.
func (h *Host) Knobs() Knobs {
	return Knobs{
		Congestion: h.cfg.Congestion, NoDelay: h.cfg.NoDelay, OptionsOff: h.cfg.OptionsOff,
	}
}

// SetKnobs turns the knobs, all or none.
func (h *Host) SetKnobs(k Knobs) error {
	cfg := h.cfg
	cfg.Congestion, cfg.NoDelay, cfg.OptionsOff = k.Congestion, k.NoDelay, k.OptionsOff
	if err := cfg.validate(); err != nil {
		return err
	}
	h.cfg = cfg
	return nil
}

// Algorithms returns the names that Knobs.Congestion takes.
func Algorithms() []string { return congestion.Names() }

// TimeWait returns how long a connection stays in TIME-WAIT (RFC 9293 §3.4.2).
func (h *Host) TimeWait() time.Duration { return 2 * max(h.cfg.MSL, 0) }
