package simulation

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// documentCell returns a cell with one flow with the application of a founding document, over links
// of 15 µs.
func documentCell(p plan.Protocol, app plan.App, loss float64) *plan.Cell {
	c := cell("reno", 0)
	wire := netem.Config{Delay: 15 * time.Microsecond, Loss: netem.UniformLoss(loss)}
	c.Path.Down, c.Path.Up, c.HostJitter = wire, wire, perfect
	c.Flows[0].Protocol, c.Flows[0].App = p, app
	c.Duration = 2 * time.Minute
	return c
}

// The client sends N(1+p)/(1-p) packets with data, and an acknowledgment every 10 ms, like the code
// of the founding document.
func TestFence(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, loss := range []float64{.1, .5} {
		var sent, want float64
		const trials = 16
		for trial := range trials {
			c := documentCell(plan.RCP, plan.App{Echo: &workload.EchoConfig{}}, loss)
			got := mustRun(t, c, trial)
			require.True(t, got.Finished, got.Note)
			v := got.Flows[0].Values
			sent += v[result.ClientSent] / trials
			want += (v[result.ClientPackets]*(1+loss)/(1-loss) + v[result.Completion]/.010) / trials
			assert.InDelta(t, v[result.ClientSent], v[result.ClientData]+v[result.ClientAcks], 0)
			assert.InDelta(t, 10.6, v[result.Completion], .6)
			assert.Greater(t, v[result.Rounds], 1000.)
		}
		assert.InEpsilon(t, want, sent, .03)
	}
}

// The applications of the founding documents also finish over IPv6.
func TestDocumentAppsOverIPv6(t *testing.T) {
	objects := &workload.ObjectsConfig{Arm: workload.RDT}
	for name, c := range map[string]*plan.Cell{
		"fence":   documentCell(plan.RCP, plan.App{Echo: &workload.EchoConfig{}}, .1),
		"tcp":     documentCell(plan.TCP, plan.App{Echo: &workload.EchoConfig{}}, .01),
		"objects": documentCell(plan.RDT, plan.App{Objects: objects}, .01),
	} {
		c.Path.IPv6 = true
		got := mustRun(t, c, 0)
		assert.True(t, got.Finished, "%s: %s", name, got.Note)
		assert.Greater(t, got.Flows[0].Values[result.Sent], 100.)
	}
}

func TestBurst(t *testing.T) {
	c := documentCell(plan.RCP, plan.App{Burst: &workload.BurstConfig{}}, 0)
	got := mustRun(t, c, 0)
	require.True(t, got.Finished, got.Note)
	assert.InDelta(t, 16, got.Flows[0].Values[result.ClientData], 0)
	assert.InDelta(t, 1, got.Flows[0].Values[result.Rounds], 0)
}

// Over TCP, the echo completes in spite of losses, but not if every packet is lost.
func TestEchoOverTCP(t *testing.T) {
	c := documentCell(plan.TCP, plan.App{Echo: &workload.EchoConfig{}}, .1)
	v := mustRun(t, c, 0).Flows[0].Values
	assert.Greater(t, v[result.Completion], 10.)
	assert.Positive(t, v[result.Retransmits])
	assert.InDelta(t, v[result.ClientSent], v[result.ClientData]+v[result.ClientAcks], 0)
	assert.Positive(t, v[result.RTTP50])
	assert.Positive(t, v[result.CwndMean])

	c.Path.Down.Loss = netem.UniformLoss(1)
	got := mustRun(t, c, 0)
	assert.False(t, got.Finished)
	assert.Contains(t, got.Note, "0 of")
}

func TestObjects(t *testing.T) {
	small := workload.ObjectsConfig{Pairs: 3, Large: 74_000, RDT: rdt.Config{Payload: 1325}}
	for arm, protocol := range map[workload.Arm]plan.Protocol{
		workload.RDT: plan.RDT, workload.Sequential: plan.TCP, workload.Interleaved: plan.TCP,
		workload.Parallel: plan.TCP,
	} {
		t.Run(arm.String(), func(t *testing.T) {
			cfg := small
			cfg.Arm = arm
			c := documentCell(protocol, plan.App{Objects: &cfg}, .05)
			c.Flows[0].Start = time.Second
			got, r := mustRecord(t, c)
			require.True(t, got.Finished, got.Note)
			v := got.Flows[0].Values
			assert.Equal(t, arm.String(), got.Flows[0].Label)
			assert.InDelta(t, 6, v[result.ObjectsDone], 0)
			assert.Less(t, v[result.SmallMean], v[result.Completion])
			assert.LessOrEqual(t, v[result.LargeLast], v[result.Completion])
			assert.Positive(t, v[result.Goodput])
			for m, has := range map[result.Metric]bool{
				result.RTTMean: protocol == plan.TCP, result.RTTP99: protocol == plan.TCP,
				// Parallel connections have no common window.
				result.CwndMean: protocol == plan.TCP && arm != workload.Parallel,
			} {
				assert.Equal(t, has, v[m] > 0, m)
			}
			require.Len(t, r.Objects, 6)
			size := 0
			for _, o := range r.Objects {
				assert.True(t, o.Done)
				assert.GreaterOrEqual(t, o.Start, time.Second)
				size += o.Size
			}
			assert.InDelta(t, size, v[result.Delivered], 0)
			c.Duration = time.Second + 2*ms
			assert.False(t, mustRun(t, c, 0).Finished)
		})
	}
}

func TestNotebook(t *testing.T) {
	testenv.NeedNoRace(t)
	c := cell("", 0)
	c.Path.Down = netem.Config{
		Rate: netem.BitsPerSecond(2_435_000), Overhead: 4, Delay: 88 * ms,
		Queue: netem.DropTail{Bytes: 26400},
	}
	c.Path.Up = c.Path.Down
	c.Path.Up.Queue = nil
	c.HostJitter = perfect
	c.Flows[0].Protocol = plan.Notebook
	c.Flows[0].App.Notebook = &plan.NotebookApp{}
	got, r := mustRecord(t, c)
	require.True(t, got.Finished, got.Note)
	v := got.Flows[0].Values
	assert.Greater(t, v[result.NotebookThroughput], 1000.)
	assert.GreaterOrEqual(t, v[result.RTTMin], .176)
	assert.InDelta(t, v[result.NotebookAcks], float64(len(r.Flows[0].Samples)),
		v[result.NotebookAcks]*.01, "a sample for each, or for several at one instant")
	assert.Equal(t, notebookBytes, r.Flows[0].MSS)
	assert.Equal(t, got.Hash, mustRun(t, c, 0).Hash)

	addFlow(c, "").App.Notebook = &plan.NotebookApp{
		Fixed: 100, NotebookConfig: workload.NotebookConfig{Duration: 10 * time.Second},
	}
	c.Flows[1].Protocol = plan.Notebook
	got = mustRun(t, c, 0)
	assert.True(t, got.Finished, got.Note)
	assert.Equal(t, "notebook tahoe", got.Flows[0].Label)
	assert.Equal(t, "notebook fixed", got.Flows[1].Label)
}

func TestUnsupportedDocumentApps(t *testing.T) {
	for _, c := range []*plan.Cell{
		documentCell(plan.RDT, plan.App{Echo: &workload.EchoConfig{}}, 0),
		documentCell(plan.RCP, plan.App{Objects: &workload.ObjectsConfig{}}, 0),
		documentCell(plan.TCP, plan.App{Objects: &workload.ObjectsConfig{}}, 0),
		documentCell(plan.TCP, plan.App{Notebook: &plan.NotebookApp{}}, 0),
		documentCell(plan.RCP, plan.App{}, 0),
	} {
		_, _, err := Run(c, 0, Options{})
		require.ErrorIs(t, err, errUnsupported)
	}
	c := documentCell(plan.RCP, plan.App{Echo: &workload.EchoConfig{Writes: -1}}, 0)
	_, _, err := Run(c, 0, Options{})
	require.ErrorIs(t, err, workload.ErrEchoConfig)
}

func compile(t *testing.T, name, text string) *starlark.Program {
	t.Helper()
	p, err := starlark.Compile(name, []byte(text), nil)
	require.NoError(t, err)
	return p
}

// The tutorial's Tahoe sends the same packets as the built-in one, with the same windows.
func TestTahoeScriptEqualsBuiltIn(t *testing.T) {
	text, err := os.ReadFile("../../../tutorial/tahoe.star")
	require.NoError(t, err)
	c := cell("tahoe", 30)
	c.Flows[0].Ssthresh = 20
	want, wantRecord := mustRecord(t, c)
	c.Flows[0].TCP.Recovery.Congestion = "mine"
	c.Flows[0].Script = compile(t, "tahoe.star", string(text))
	got, gotRecord := mustRecord(t, c)
	assert.Equal(t, want.Hash, got.Hash)
	assert.Equal(t, "mine", got.Flows[0].Label)
	assert.Equal(t, wantRecord.Flows[0].Samples, gotRecord.Flows[0].Samples)
}

// If a script fails, the run ends, and the error gives the position.
func TestFailingScript(t *testing.T) {
	const text = `
def init(state, conn):
    print("started")
    state.n = 0

def on_ack(state, ack):
    state.n += 1
    if state.n == 100:
        fail("enough")

def on_loss(state, loss):
    pass
`
	c := cell("mine", 60)
	c.Flows[0].Script = compile(t, "bad.star", text)
	var lines []string
	_, _, err := Run(c, 0, Options{Printed: func(at time.Duration, line string) {
		assert.GreaterOrEqual(t, at, time.Duration(0))
		lines = append(lines, line)
	}})
	var e *starlark.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, 9, e.Line)
	assert.Contains(t, e.What, "enough")
	assert.Contains(t, strings.Join(lines, "\n"), "started")
}
