package workload

import (
	"math/rand/v2"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
)

// ObjectCache keeps the latest objects. All cells of a sweep have the same seed, and therefore the
// same objects. Making ten million bytes takes as long as transferring them. Objects must not be
// changed. The zero ObjectCache is empty. Only one goroutine may use an ObjectCache.
type ObjectCache struct {
	label label
	items []Item
}

// label identifies the objects that a configuration makes.
type label struct {
	first, second       uint64 // numbers of the objects' random stream
	pairs, small, large int
}

// take returns the objects of a configuration, made with the random stream of that name.
func (s *ObjectCache) take(w *sim.World, name string, cfg *ObjectsConfig) []Item {
	r := source(w, name, cfg)
	l := label{r.Uint64(), r.Uint64(), cfg.Pairs, cfg.Small, cfg.Large}
	if s.items == nil || s.label != l {
		s.label, s.items = l, makeItems(cfg, source(w, name, cfg))
	}
	return s.items
}

// source returns the random stream of that name, from its beginning.
func source(w *sim.World, name string, cfg *ObjectsConfig) *rand.Rand {
	if cfg.Seed != 0 {
		return netem.Streams(cfg.Seed)(name)
	}
	return w.Rand(name)
}

// Attach makes a client on one host fetch objects from a server on another, at the address and port
// at. The objects are from the cache, if it has them.
func (s *ObjectCache) Attach(
	client, server *sim.Host, at netip.AddrPort, cfg ObjectsConfig,
) (*ObjectsApp, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := newApp(client, s.take(client.World(), client.Name()+" objects", &cfg))
	arm := attachTCP
	if cfg.Arm == RDT {
		arm = attachRDT
	}
	if err := arm(a, client, server, at, &cfg); err != nil {
		return nil, err
	}
	return a, nil
}
