package ns3

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab"
	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

// cellOf returns the first cell of an experiment with a path and flows.
func cellOf(t *testing.T, path, flows string) *plan.Cell {
	t.Helper()
	f, err := plan.Parse("mine.yaml", []byte("name: mine\nduration: 10s\nwarmup: 1s\n"+
		"path:\n  down: "+path+"\nflows:\n  - "+flows+"\n"))
	require.NoError(t, err)
	cells, err := f.Cells()
	require.NoError(t, err)
	return &cells[0]
}

func TestScenario(t *testing.T) {
	for _, test := range []struct{ name, path, flows, want string }{
		{
			"tail drop and loss", "{delay: 20ms, rate: 5Mbit/s, queue: 30pkt, loss: 1%}", "{cc: reno}",
			"down.delay 0.02\ndown.loss 0.01\ndown.rate 5000000\ndown.disc ns3::FifoQueueDisc\n" +
				"down.attribute MaxSize 30p\nup.delay 0.02\nflow 0\nflow.cc TcpLinuxReno",
		},
		{
			"bandwidth-delay products are bytes", "{delay: 20ms, rate: 6Mbit/s, queue: 1bdp}", "{cc: cubic}",
			"down.attribute MaxSize 30000B",
		},
		{
			"CoDel with ECN",
			"{delay: 1ms, rate: 5Mbit/s, queue: {type: codel, target: 7ms, ecn: on}}", "{cc: bbr, ecn: on}",
			"down.disc ns3::CoDelQueueDisc\ndown.attribute Target 0.007s\ndown.attribute UseEcn true",
		},
		{
			"PIE with all of RFC 8033",
			"{delay: 1ms, rate: 5Mbit/s, queue: {type: pie, target: 7ms}}", "{cc: reno}",
			"down.disc ns3::PieQueueDisc\ndown.attribute QueueDelayReference 0.007s\n" +
				"down.attribute UseEcn false\ndown.attribute UseDequeueRateEstimator true\n" +
				"down.attribute UseDerandomization true",
		},
		{
			"RED's thresholds",
			"{delay: 1ms, rate: 5Mbit/s, queue: {type: red, min: 10pkt, max: 30pkt, limit: 90pkt}}",
			"{cc: reno}",
			"down.disc ns3::RedQueueDisc\ndown.attribute MinTh 10\ndown.attribute MaxTh 30\n" +
				"down.attribute LinkBandwidth 5000000bps\ndown.attribute Gentle true\n" +
				"down.attribute UseEcn false\ndown.attribute UseHardDrop true\n" +
				"down.attribute Wait false\ndown.attribute LInterm 10\ndown.attribute QW 0.002\n" +
				"down.attribute MeanPktSize 1000",
		},
		{
			"a segment leaves room for timestamps", "{delay: 1ms, rate: 5Mbit/s}", "{cc: reno, mss: 1000}",
			"flow.mss 988",
		},
		{
			"acknowledgments at once", "{delay: 1ms, rate: 5Mbit/s}", "{cc: reno, delayed_ack: off}",
			"flow.delack 1\n",
		},
		{
			"links of the flow's hosts", "{delay: 1ms, rate: 5Mbit/s}", "{cc: reno, delay: 10ms, start: 2s}",
			"flow.start 2\nflow.stop 0\nflow.delay 0.01",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, err := scenario(&cellOf(t, test.path, test.flows).Experiment)
			require.NoError(t, err)
			assert.Contains(t, text, test.want)
		})
	}
}

func TestScenarioRefuses(t *testing.T) {
	const link = "{delay: 1ms, rate: 5Mbit/s}"
	for _, test := range []struct{ name, path, flows, want string }{
		{"jitter", "{delay: 1ms, jitter: 1ms}", "{cc: reno}", "jitter or reordering"},
		{"duplicates", "{delay: 1ms, duplicate: 1%}", "{cc: reno}", "duplicated, corrupted or truncated"},
		{"a trace", "{delay: 1ms, trace: {poisson: 2Mbit/s}}", "{cc: reno}", "a rate that changes"},
		{
			"bursts of loss", "{delay: 1ms, loss: {gilbert: {mean: 1%, burst: 3}}}", "{cc: reno}",
			"this loss model",
		},
		{"Tahoe", link, "{cc: tahoe}", "tahoe's congestion control tahoe"},
		{"RCP", link, "{protocol: rcp}", "rcp's protocol rcp"},
		{"paced writes", link, "{app: {rate: 1Mbit/s}}", "application, which is not bulk"},
		{"go-back-N", link, "{cc: reno, recovery: gbn}", "go-back-N recovery"},
		{"no timestamps", link, "{cc: reno, timestamps: off}", "lack of timestamps"},
		{"pacing", link, "{cc: reno, pacing: on}", "pacing"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Able(&cellOf(t, test.path, test.flows).Experiment)
			var unable *UnableError
			require.ErrorAs(t, err, &unable)
			assert.ErrorContains(t, err, "ns-3 cannot simulate ")
			assert.ErrorContains(t, err, test.want)
		})
	}
}

func TestReadOutput(t *testing.T) {
	cell := cellOf(t, "{delay: 20ms, rate: 5Mbit/s}", "{cc: reno, size: 1MB}")
	trial, record, err := read(strings.NewReader("sample 0 0.5 14480 0 0.04 2896\n"+
		"progress 0 0.6 1448\nflow 0 goodput 4e6 delivered 1000000 completion 2.5\n"+
		"link down utilisation 0.8 queue_drops 3\nlink up utilisation 0\nevents 12\n"), cell, 2, true)
	require.NoError(t, err)
	assert.True(t, trial.Finished)
	assert.InDelta(t, 4e6, trial.Flows[0].Values[result.Goodput], 0)
	assert.InDelta(t, 0.8, trial.Whole[result.Utilization], 0)
	assert.NotZero(t, trial.Hash)
	assert.Equal(t, cell.Seed+2, trial.Seed)
	assert.Equal(t, 14480, record.Flows[0].Samples[0].Cwnd)
	assert.Len(t, record.Flows[0].Progress, 1)

	cut, _, err := read(strings.NewReader("flow 0 goodput 4e6\n"), cell, 0, false)
	require.NoError(t, err)
	assert.False(t, cut.Finished, "the transfer has no completion time")

	for _, text := range []string{
		"flow 1 goodput 1\n", "flow x goodput 1\n", "flow 0 goodput x\n", "sample 0 1 2\n",
		"progress 0 1\n", "nonsense 0\n", "flow\n",
	} {
		_, _, err := read(strings.NewReader(text), cell, 0, true)
		assert.ErrorContains(t, err, "ns-3's driver printed", text)
	}
}

func TestFindWithoutNS3(t *testing.T) {
	t.Setenv("TIDEPOOL_NS3", "/nonexistent")
	_, err := Find(t.Context())
	require.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, "TIDEPOOL_NS3=DIR/ns3")
}

// ns-3's Reno gains from the window growth at the end of a recovery. Without that growth, its
// goodput is close to the laboratory's; see docs/ns3.md.
func TestRenoAndNS3(t *testing.T) {
	simulator, err := Find(t.Context())
	if errors.Is(err, ErrNotFound) {
		t.Skip("skip: needs ns3")
	}
	require.NoError(t, err)
	s, err := lab.Load(lab.Request{
		Experiment: "../scenarios/reno-loss.yaml",
		Changes:    []lab.Change{{Text: "duration=60s"}, {Text: "path.down.loss=5%"}},
	})
	require.NoError(t, err)
	goodput := func(without ...string) float64 {
		o := Options{Without: without}
		trial, _, err := simulator.Play(t.Context(), &s.Cells[0], 0, o)
		require.NoError(t, err)
		again, _, err := simulator.Play(t.Context(), &s.Cells[0], 0, o)
		require.NoError(t, err)
		assert.Equal(t, trial.Hash, again.Hash, "the same run twice")
		return trial.Flows[0].Values[result.Goodput]
	}
	const ours = 1.194e6 // bit/s: the mean of 5 trials
	assert.InEpsilon(t, 1.30*ours, goodput(), 0.15)
	assert.InEpsilon(t, 0.94*ours, goodput("end-growth"), 0.15)
}

// Both simulators play the same scenario: four Reno flows and CoDel, for ten seconds.
func BenchmarkJudge(b *testing.B) {
	s, err := lab.Load(lab.Request{
		Experiment: "../scenarios/aqm.yaml",
		Changes:    []lab.Change{{Text: "duration=10s"}, {Text: "warmup=1s"}},
	})
	require.NoError(b, err)
	for _, name := range []string{"tidepool", "ns-3"} {
		b.Run(name, func(b *testing.B) {
			player := simulation.Run
			if name == "ns-3" {
				simulator, err := Find(b.Context())
				if errors.Is(err, ErrNotFound) {
					b.Skip("skip: needs ns3")
				}
				require.NoError(b, err)
				player = func(cell *plan.Cell, trial int, _ simulation.Options) (
					*result.Trial, *result.Record, error,
				) {
					return simulator.Play(b.Context(), cell, trial, Options{})
				}
			}
			packets := 0.0
			for b.Loop() {
				trial, _, err := player(&s.Cells[0], 0, simulation.Options{})
				require.NoError(b, err)
				packets += trial.Whole[result.Packets]
			}
			b.ReportMetric(packets/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
