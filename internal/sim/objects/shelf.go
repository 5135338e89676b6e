package objects

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/sim"
)

// Shelf keeps the objects that were made last. A trial has the same ones in every cell of a
// sweep, for its seed decides, and making ten million bytes takes as long as moving them. Nobody
// writes to objects, so that who comes next finds them as they were made. The zero Shelf is
// empty; one owner calls it.
type Shelf struct {
	label label
	items []item
}

// label is what objects are made from.
type label struct {
	first, second       uint64 // numbers of their random stream
	pairs, small, large int
}

// take returns the objects that cfg asks for, of the random stream of that name.
func (s *Shelf) take(w *sim.World, name string, cfg *Config) []item {
	r := w.Rand(name)
	l := label{r.Uint64(), r.Uint64(), cfg.Pairs, cfg.Small, cfg.Large}
	if s.items == nil || s.label != l {
		s.label, s.items = l, makeItems(cfg, w.Rand(name))
	}
	return s.items
}

// Attach is the package's Attach with objects from the shelf.
func (s *Shelf) Attach(client, server *sim.Host, at netip.AddrPort, cfg Config) (*App, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := newApp(client, s.take(client.World(), client.Name()+" "+cfg.Name, &cfg))
	arm := attachTCP
	if cfg.Arm == RDT {
		arm = attachRDT
	}
	if err := arm(a, client, server, at, &cfg); err != nil {
		return nil, err
	}
	return a, nil
}
