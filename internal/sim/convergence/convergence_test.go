package convergence

import (
	"bytes"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/stack"
)

var update = flag.Bool("update", false, "write the golden files")

// golden lists the experiments whose tables are compared with files.
var golden = []struct {
	name, dialect string
	long          bool
}{
	{"rip-line-15", "rip", false},
	{"rip-line-15", "rip2", false},
	{"rip-line-15", "ripng", false},
	{"rip-ring-29", "rip", false},
	{"rip-ring-29", "rip2", false},
	{"rip-ring-29", "ripng", false},
	{"rip-grid-8", "rip", false},
	{"rip-grid-8", "rip2", false},
	{"rip-count", "rip", false},
	{"rip-count", "rip2", false},
	{"rip-count", "ripng", false},
	{"rip-random-200", "rip", false},
	{"rip-random-1000", "rip", true},
	{"rip-random-1000", "rip2", true},
}

func TestGolden(t *testing.T) {
	for _, tt := range golden {
		t.Run(tt.name+" "+tt.dialect, func(t *testing.T) {
			if tt.long { // these networks have a thousand routers
				testenv.NeedLong(t)
			}
			o, err := Run(tt.name, Options{Dialect: tt.dialect, Seed: 1})
			require.NoError(t, err)
			var got bytes.Buffer
			require.NoError(t, o.Print(&got))
			path := filepath.Join("testdata", tt.name+"-"+tt.dialect+".txt")
			if *update {
				require.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String())
			if o.Network != nil {
				check(t, o.Network)
			}
		})
	}
}

// check compares an outcome with the bounds of RFC 2453 and RFC 2080.
func check(t *testing.T, r *Result) {
	t.Helper()
	require.Len(t, r.Phases, 6)
	dialect, err := dialectOf(r.Dialect)
	require.NoError(t, err)
	timers := rip.Timers{}.WithDefaults(dialect)
	assert.Equal(t, r.Routers*r.Links, r.Routes, "every network is reachable")
	for _, p := range r.Phases {
		assert.Less(t, p.Longest, timers.Timeout, "%s: no loop outlives the timeout", p.Name)
		assert.Less(t, p.Highest, rip.Infinity, p.Name)
	}
	if silent := r.Phases[4]; r.Routers > 3 {
		assert.NotZero(t, silent.Messages.Responses)
		assert.Greater(t, silent.Converged, timers.Timeout/2, "detected by timeouts")
	}
}

// Every size of every family but the random one runs with a different seed. Run returns an error
// unless the routes are right after every phase.
func TestEverySize(t *testing.T) {
	for _, f := range families[:3] {
		for n := f.least; n <= f.most; n++ {
			if !testenv.Long() && n%4 != 0 {
				continue
			}
			name := fmt.Sprintf("rip-%s-%d", f.name, n)
			o, err := Run(name, Options{Seed: uint64(n)})
			require.NoError(t, err)
			check(t, o.Network)
		}
	}
}

func TestRandomNetworks(t *testing.T) {
	seeds := uint64(20)
	if !testenv.Long() {
		seeds = 6 // the larger networks run the same code with more routers
	}
	for seed := range seeds {
		for _, dialect := range dialects {
			o, err := Run(fmt.Sprintf("rip-random-%d", 4+5*seed), Options{Dialect: dialect, Seed: seed})
			require.NoError(t, err)
			check(t, o.Network)
		}
	}
}

// RFC 2453 §3.2: the longest path has 15 hops, including the destination network itself.
func TestPathsBeyondInfinity(t *testing.T) {
	w, err := build(line(18), 1, rip.RIPv2)
	require.NoError(t, err)
	w.observer.begin()
	w.Run(4 * time.Minute)
	assert.Zero(t, w.observer.wrong, "networks that are too far are unreachable")
	assert.Equal(t, uint8(rip.Infinity), w.observer.want[16*18])
	assert.Equal(t, uint8(15), w.observer.want[14*18])
}

// RFC 2453 §3.4.4: counting to infinity takes at most 16 steps, not 16 update periods. RFC 2080
// §2.6 has the same split horizon with poisoned reverse.
func TestCountToInfinity(t *testing.T) {
	for _, dialect := range []string{"rip", "ripng"} {
		countsToInfinity(t, dialect)
	}
}

func countsToInfinity(t *testing.T, dialect string) {
	t.Helper()
	o, err := Run("rip-count", Options{Seed: 1, Dialect: dialect})
	require.NoError(t, err)
	highest := 0
	for _, s := range o.Count.Steps {
		if s.Cost < rip.Infinity {
			highest = max(highest, s.Cost)
		}
	}
	assert.GreaterOrEqual(t, highest, 13, "the routers count up")
	d, err := dialectOf(dialect)
	require.NoError(t, err)
	timers := rip.Timers{}.WithDefaults(d)
	limit := timers.Periodic + rip.Infinity*max(timers.TriggerMax, 0)
	assert.Less(t, o.Count.Over, limit, "triggered updates shorten the count")
	last := o.Count.Steps[len(o.Count.Steps)-1]
	assert.Equal(t, rip.Infinity, last.Cost)
}

// RIPv2 and RIPng run on the same routers, each for its address family. After cuts, flaps and a
// restart of RIP on one router, their routes have the same metrics. The restart keeps the routes.
func TestBothFamilies(t *testing.T) {
	for seed := range uint64(3) {
		g := randomGraph(20, seed)
		w, err := build(g, seed, rip.RIPv2, rip.RIPng)
		require.NoError(t, err)
		require.NoError(t, w.run(&Result{Name: "both"}))
		for _, rp := range w.hosts[3].Stack().RIPs() {
			cfg := &rip.Config{Dialect: rip.RIPv2}
			require.NoError(t, rp.Restart(w.Now(), stack.Config{RIP: cfg, RIPng: &rip.Config{Dialect: rip.RIPng}}))
		}
		w.hosts[3].Settle()
		w.Run(4 * time.Minute)
		assert.Zero(t, w.observer.wrong)
		assert.LessOrEqual(t, w.observer.settled, w.Now().Add(-4*time.Minute), "no route changed")
		for i, h := range w.hosts {
			metrics := [2][]int{make([]int, len(g.links)), make([]int, len(g.links))}
			for _, r := range h.Stack().Routing().Infos() {
				if r.Origin == "R" {
					metrics[max(0, r.Prefix.Addr().BitLen()-127)][linkOf(r.Prefix)] = r.Cost
				}
			}
			assert.Equal(t, metrics[0], metrics[1], "router %d, seed %d", i, seed)
			want := int(w.observer.want[19*w.routers+i])
			assert.Equal(t, want, metrics[1][19], "router %d, seed %d", i, seed)
		}
	}
}

func TestSeeds(t *testing.T) {
	hash := func(seed uint64) string {
		o, err := Run("rip-random-30", Options{Seed: seed})
		require.NoError(t, err)
		return o.Network.Hash
	}
	first := hash(1)
	assert.Equal(t, first, hash(1))
	assert.NotEqual(t, first, hash(2))
}

// The observer detects a routing loop of three routers that point at each other.
func TestLoopsAreDetected(t *testing.T) {
	g := ring(3)
	g.routers++
	g.links = append(g.links, [2]int{0, 3})
	w, err := build(g, 1, rip.Course)
	require.NoError(t, err)
	w.Run(time.Second)
	w.setDown(3, true)
	w.Run(time.Second)
	w.observer.begin()
	point := func(from, link int) {
		face := w.ends[link][0].Iface
		if w.links[link][1] == from {
			face = w.ends[link][1].Iface
		}
		w.observer.routeChanged(from, rip.Change{
			Prefix: netip.PrefixFrom(address(3, 0), 30), Iface: face, Cost: 5,
		})
	}
	point(0, 0) // points to router 1
	point(1, 1) // points to router 2
	assert.Empty(t, w.observer.loops)
	point(2, 2) // points to router 0
	require.Len(t, w.observer.loops, 1)
	w.Run(time.Millisecond)
	w.observer.routeChanged(1, rip.Change{Prefix: netip.PrefixFrom(address(3, 0), 30), Gone: true})
	assert.Empty(t, w.observer.loops)
	assert.Equal(t, 1, w.observer.found)
	assert.Equal(t, time.Millisecond, w.observer.longest)
}

func TestUnknownExperiments(t *testing.T) {
	for name, text := range map[string]string{
		"":               `no such experiment: ""`,
		"fence":          `no such experiment: "fence"`,
		"rip-star-5":     `no such experiment: "rip-star-5"`,
		"rip-line-16":    "rip-line-N must be 2 to 15",
		"rip-line-":      "rip-line-N must be 2 to 15",
		"rip-ring-2":     "rip-ring-N must be 3 to 29",
		"rip-random-1e9": "rip-random-N must be 4 to 2000",
	} {
		_, err := Run(name, Options{})
		require.ErrorIs(t, err, ErrCase, name)
		assert.Contains(t, err.Error(), text)
	}
	_, err := Run("rip-count", Options{Dialect: "ospf"})
	require.ErrorIs(t, err, ErrDialect)
	assert.Contains(t, err.Error(), "must be rip, rip2 or ripng")
}

func TestExperimentsRun(t *testing.T) {
	for _, e := range Experiments() {
		if strings.Contains(e.Name, "random") {
			continue // TestGolden runs this experiment
		}
		_, err := Run(e.Name, Options{})
		assert.NoError(t, err, e.Name)
	}
}

func BenchmarkRandom1000(b *testing.B) {
	for b.Loop() {
		if _, err := Run("rip-random-1000", Options{Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
