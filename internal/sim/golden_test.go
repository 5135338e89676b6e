package sim_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenWorld is a small world of one kind.
type goldenWorld struct {
	name string
	run  func(t *testing.T, seed uint64) *sim.World
}

// goldenWorlds has each algorithm, each recovery strategy, and each kind of impairment.
func goldenWorlds() []goldenWorld {
	var all []goldenWorld
	for _, congested := range []string{"cubic", "reno", "tahoe", "bbr", "bbr3", "none"} {
		all = append(all, goldenWorld{"dumbbell " + congested, func(t *testing.T, seed uint64) *sim.World {
			c := cell{flows: 2, congested: congested, rate: 20e6, loss: 0.001}
			w, _ := c.world(t, seed)
			w.Run(3 * time.Second)
			return w
		}})
	}
	for _, recovery := range []string{"rack", "sack", "newreno", "gbn"} {
		all = append(all, goldenWorld{"line " + recovery, func(t *testing.T, seed uint64) *sim.World {
			cfg := tcp.Config{Knobs: tcp.Knobs{Recovery: tcp.Recovery{Congestion: "reno", Strategy: recovery}}}
			return move(t, seed, sim.LineConfig{
				Left: cfg, Right: cfg, Links: []sim.LinkConfig{both(netem.Config{
					Rate: netem.BitsPerSecond(10e6), Queue: netem.DropTail{Packets: 30},
					Delay: 10 * time.Millisecond, Loss: netem.Bursts(0.01, 3),
				})},
			}, 500_000, 100_000).World
		}})
	}
	wild := netem.Config{
		Rate: netem.BitsPerSecond(20e6), Queue: netem.CoDel{},
		Delay: 3 * time.Millisecond, Jitter: netem.NormalJitter(time.Millisecond), Overtaking: true,
		Loss: netem.UniformLoss(0.01), Duplicate: 0.01, Truncate: 0.01,
		Corrupt: netem.Corrupt{Share: 0.01}, Reorder: netem.Reorder{Share: 0.01},
	}
	return append(all,
		goldenWorld{"line wild", func(t *testing.T, seed uint64) *sim.World {
			return move(t, seed, sim.LineConfig{
				Routers: 1, Links: []sim.LinkConfig{both(wild)},
			}, 400_000, 50_000).World
		}},
		goldenWorld{"line fragments", func(t *testing.T, seed uint64) *sim.World {
			narrow := sim.LinkConfig{
				AB: netem.Config{Delay: time.Millisecond}, BA: netem.Config{Delay: time.Millisecond}, MTU: 300,
			}
			return move(t, seed, sim.LineConfig{Routers: 1, Links: []sim.LinkConfig{narrow}},
				50_000, 50_000).World
		}},
		goldenWorld{"line rip", func(t *testing.T, seed uint64) *sim.World {
			l, err := sim.NewLine(seed, sim.LineConfig{
				Routers: 3, RIP: &rip.Config{},
				Links: []sim.LinkConfig{both(netem.Config{Delay: time.Millisecond})},
			})
			require.NoError(t, err)
			l.Run(20 * time.Second)
			over, err := l.Bulk(&sim.Bulk{Send: 100_000}, &sim.Bulk{}, 80, time.Minute)
			require.NoError(t, err)
			require.True(t, over)
			return l.World
		}},
	)
}

// TestGoldenHashes checks that worlds send the same packets on every machine, and in every version
// that does not change their behavior on purpose.
func TestGoldenHashes(t *testing.T) {
	path := filepath.Join("testdata", "hashes.txt")
	var got strings.Builder
	for _, g := range goldenWorlds() {
		w := g.run(t, 1)
		fmt.Fprintf(&got, "%s: %016x, %d sent\n", g.name, w.Hash(), w.Stats().Sent)
		if testenv.Long() {
			assert.NotEqual(t, w.Hash(), g.run(t, 2).Hash(), "%s: another seed", g.name)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.String(), "-update rewrites the file")
}
