package plan_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

func parse(t *testing.T, text string) *plan.File {
	t.Helper()
	f, err := plan.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	return f
}

// one returns the only cell of a file.
func one(t *testing.T, text string) plan.Experiment {
	t.Helper()
	cells, err := parse(t, text).Cells()
	require.NoError(t, err)
	require.Len(t, cells, 1)
	return cells[0].Experiment
}

const tahoe = `
name: tahoe-low
duration: 240s
seed: 7
trials: 30
path:
  down: {delay: 88ms, rate: 2.64Mbit/s, queue: {type: droptail, limit: 26400B}, loss: 1%}
  up: {delay: 88ms, rate: same, queue: infinite}
flows:
  - {cc: tahoe, recovery: gbn, mss: 1460, iw: 1, ssthresh: 10}
warmup: 20s
`

func TestCompleteFile(t *testing.T) {
	got := one(t, tahoe)
	rate := netem.BitsPerSecond(2_640_000)
	assert.Equal(t, plan.Experiment{
		Name: "tahoe-low", Duration: 240 * time.Second, Warmup: 20 * time.Second, Seed: 7,
		Trials:     30,
		HostJitter: 4545455, // the service time of 1500 bytes at 2.64 Mbit/s
		Path: plan.Path{
			MTU: 1500,
			Down: netem.Config{
				Delay: 88 * time.Millisecond, Rate: rate, Queue: netem.DropTail{Bytes: 26400},
				Loss: netem.UniformLoss(.01),
			},
			Up: netem.Config{Delay: 88 * time.Millisecond, Rate: rate},
		},
		Flows: []plan.Flow{{
			Name: "tahoe", Protocol: plan.TCP, MSS: 1460, Ssthresh: 10,
			TCP: tcp.Config{Knobs: tcp.Knobs{
				Recovery: tcp.Recovery{
					Congestion: "tahoe", Strategy: "gbn", InitialWindow: 1, RTOInitial: time.Second,
					RTOMin: 200 * time.Millisecond, RTOMax: 2 * time.Minute,
				},
				DelayedAck: 40 * time.Millisecond, MTUProbing: tcp.MTUProbingOff, ECN: tcp.ECNOff,
			}},
		}},
	}, got)
}

// Each cell has its own values; the last key changes fastest.
func TestCells(t *testing.T) {
	f := parse(t,
		tahoe+"sweep: {flows.0.cc: [tahoe, reno], path.down.queue.limit: [1bdp, 20pkt, 50ms]}\n")
	require.NoError(t, f.Set("path.down.delay=12ms"))
	require.NoError(t, f.Set("path.up.delay=0"))
	cells, err := f.Cells()
	require.NoError(t, err)
	require.Len(t, cells, 6)
	bdp, pkt, ms := netem.DropTail{Bytes: 3960}, netem.DropTail{Packets: 20},
		netem.DropTail{Bytes: 16500}
	for i, want := range []struct {
		cc, limit string
		queue     netem.DropTail
	}{
		{"tahoe", "1bdp", bdp},
		{"tahoe", "20pkt", pkt},
		{"tahoe", "50ms", ms},
		{"reno", "1bdp", bdp},
		{"reno", "20pkt", pkt},
		{"reno", "50ms", ms},
	} {
		c := cells[i]
		assert.Equal(t, i, c.Index)
		assert.Equal(t, []plan.Setting{
			{Key: "flows.0.cc", Name: "cc", Value: want.cc},
			{Key: "path.down.queue.limit", Name: "limit", Value: want.limit},
		}, c.Set)
		assert.Equal(t, want.cc, c.Flows[0].TCP.Recovery.Congestion)
		assert.Equal(t, want.queue, c.Path.Down.Queue)
	}
	require.NoError(t, f.Set("flows.0.cc=cubic"), "a key that is set is no longer swept")
	require.NoError(t, f.Sweep("path.down.queue.limit=5kB,6kB"),
		"the flag's values replace the file's")
	cells, err = f.Cells()
	require.NoError(t, err)
	require.Len(t, cells, 2)
	assert.Equal(t, "cubic", cells[1].Flows[0].TCP.Recovery.Congestion)
	assert.Equal(t, netem.DropTail{Bytes: 6000}, cells[1].Path.Down.Queue)
}

// The user gets a warning about flows that can lock in phase.
func TestWarnings(t *testing.T) {
	for text, want := range map[string]int{
		whole: 0, whole + "host_jitter: 0\n": 0,
		head + onePath + "flows: [{count: 2}]\n":                                                0,
		head + onePath + "host_jitter: off\nflows: [{count: 2}]\n":                              1,
		head + onePath + "flows: [{count: 2}]\nsweep: {host_jitter: [1svc, 0], seed: [1, 2]}\n": 1,
	} {
		cells, err := parse(t, text).Cells()
		require.NoError(t, err)
		assert.Len(t, plan.Warnings(cells), want, text)
	}
}

// A number that does not fit in a float is an error.
func TestOverflow(t *testing.T) {
	f := parse(t, tahoe)
	require.NoError(t, f.Set("duration=1e400s"))
	_, err := f.Cells()
	require.ErrorContains(t, err, `"1e400s" is not a quantity: it is too large`)
}

// An error in a flag quotes the flag.
func TestFlagErrors(t *testing.T) {
	f := parse(t, tahoe)
	require.NoError(t, f.Set("path.down.queue.limit=1bpd"))
	require.NoError(t, f.Sweep("flows.0.cc=reno,cubik"))
	_, err := f.Cells()
	require.Error(t, err)
	assert.Equal(t, `--sweep: "cubik" is not a congestion control (did you mean cubic?); expected `+
		`bbr, bbr3, cubic, fixed, newreno, none, reno, tahoe or a FILE.star
    flows.0.cc=reno,cubik
                    ^^^^^
--set: "1bpd" is not a quantity: "bpd" is not a unit; expected a queue's limit, such as 26400B, 50pkt, `+
		`1bdp or 88ms
    path.down.queue.limit=1bpd
                          ^^^^`, err.Error())
}
