package play

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

const (
	ms      = time.Millisecond
	mtu     = 1500
	service = 1 * ms // of a full packet at 12 Mbit/s
)

// cell is one flow of TCP over 12 Mbit/s and 60 ms, with a queue of so many packets.
func cell(cc string, queue int) *plan.Cell {
	link := netem.Config{Rate: netem.BitsPerSecond(12e6), Delay: 30 * ms}
	down := link
	down.Queue = netem.DropTail{Packets: queue}
	c := &plan.Cell{Experiment: plan.Experiment{
		Name: cc, Duration: 60 * time.Second, Seed: 1, Trials: 1, HostJitter: service,
		Path: plan.Path{Down: down, Up: link, MTU: mtu},
	}}
	addFlow(c, cc)
	return c
}

func addFlow(c *plan.Cell, cc string) *plan.Flow {
	t := tcp.Config{RecvBuffer: 8 << 20, SendBuffer: 8 << 20}
	t.Congestion = cc
	c.Flows = append(c.Flows, plan.Flow{
		Name: cc + string(rune('a'+len(c.Flows))), Protocol: plan.TCP, TCP: t,
	})
	return &c.Flows[len(c.Flows)-1]
}

func mustRun(t *testing.T, c *plan.Cell, trial int) *result.Trial {
	t.Helper()
	got, _, err := Run(c, trial, Options{})
	require.NoError(t, err)
	return got
}

func TestBulk(t *testing.T) {
	c := cell("reno", 60)
	c.Flows[0].App.Size = 3_000_000
	got := mustRun(t, c, 0)
	t.Logf("%+v", got)
	assert.True(t, got.Finished, got.Note)
	assert.InDelta(t, 3e6, got.Flows[0].Values[result.Delivered], 0)
	assert.InDelta(t, 2.5, got.Flows[0].Values[result.Completion], .7)
}
