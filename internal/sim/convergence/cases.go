package convergence

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
)

// ErrCase is the error for an unknown experiment.
var ErrCase = errors.New("no such experiment")

// family is a set of networks of one shape and different sizes.
type family struct {
	name        string
	least, most int
	usual       int
	text        string
	make        func(n int, seed uint64) graph
}

// The sizes keep every path at 14 hops or less. With 16 as infinity, and a cost of 1 for an
// attached network, RIP cannot use longer paths (RFC 2453 §3.2).
var families = []family{
	{"line", 2, 15, 15, "N routers in a line", func(n int, _ uint64) graph { return line(n) }},
	{"ring", 3, 29, 29, "N routers in a ring", func(n int, _ uint64) graph { return ring(n) }},
	{"grid", 2, 8, 8, "a square of N x N routers", func(n int, _ uint64) graph { return grid(n) }},
	{
		"random", 4, 2000, 1000, "N routers, each linked to an earlier one, and N/2 more links",
		func(n int, seed uint64) graph { return randomGraph(n, seed) },
	},
}

const (
	namePrefix = "rip-"
	countName  = "count"
	maxHops    = 14 // maximum number of hops
)

// randomGraph draws random networks until the diameter of one is within RIP's limit.
func randomGraph(n int, seed uint64) graph {
	rng := netem.Streams(seed)("graph")
	for {
		if g := random(n, rng); g.diameter() <= maxHops {
			return g
		}
	}
}

// Experiment is the name of an experiment for Run, and its description.
type Experiment struct{ Name, Text string }

// Experiments lists the experiments, at their default sizes.
func Experiments() []Experiment {
	var list []Experiment
	for _, f := range families {
		list = append(list, Experiment{
			Name: fmt.Sprintf("%s%s-%d", namePrefix, f.name, f.usual),
			Text: fmt.Sprintf("%s, N from %d to %d", f.text, f.least, f.most),
		})
	}
	return append(list, Experiment{
		Name: namePrefix + countName, Text: "three routers that count to infinity",
	})
}

// Options are the options of an experiment.
type Options struct {
	Dialect string // "rip" or empty: the course's dialect; otherwise "rip2" or "ripng"
	Seed    uint64
}

// Outcome is the result of Run. One of its fields is set.
type Outcome struct {
	Network *Result `json:"network,omitempty"`
	Count   *Count  `json:"count,omitempty"`
}

// Run runs an experiment by its name, such as rip-grid-5. For an unknown name, it returns ErrCase.
func Run(name string, o Options) (*Outcome, error) {
	dialect, err := dialectOf(o.Dialect)
	if err != nil {
		return nil, err
	}
	rest, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrCase, name)
	}
	if rest == countName {
		c, err := countToInfinity(dialect, o.Seed)
		return &Outcome{Count: c}, err
	}
	shape, size, _ := strings.Cut(rest, "-")
	i := slices.IndexFunc(families, func(f family) bool { return f.name == shape })
	if i < 0 {
		return nil, fmt.Errorf("%w: %q", ErrCase, name)
	}
	f := families[i]
	n, err := strconv.Atoi(size)
	if err != nil || n < f.least || n > f.most {
		return nil, fmt.Errorf("%w: %q: N of %s%s-N must be %d to %d",
			ErrCase, name, namePrefix, shape, f.least, f.most)
	}
	g := f.make(n, o.Seed)
	w, err := build(g, o.Seed, dialect)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Name: name, Dialect: dialects[dialect], Seed: o.Seed, Routers: g.routers,
		Links: len(g.links), Diameter: g.diameter(),
	}
	if err := w.run(r); err != nil {
		return nil, err
	}
	r.Packets, r.Elapsed, r.Hash = w.Stats().Sent, w.Elapsed(), fmt.Sprintf("%016x", w.Hash())
	return &Outcome{Network: r}, nil
}

// ErrDialect is the error for an unknown dialect.
var ErrDialect = errors.New("no such dialect")

var dialects = [...]string{rip.Course: "rip", rip.RIPv2: "rip2", rip.RIPng: "ripng"}

func dialectOf(name string) (rip.Dialect, error) {
	i := slices.Index(dialects[:], cmp.Or(name, dialects[rip.Course]))
	if i < 0 {
		return 0, fmt.Errorf("%w: %q: must be rip, rip2 or ripng", ErrDialect, name)
	}
	return rip.Dialect(i), nil //nolint:gosec // index into dialects
}
