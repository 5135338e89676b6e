package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/rdt"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

const (
	ms   = time.Millisecond
	mbit = netem.BitsPerSecond(1e6)
)

// Each text of the direction down results in this link.
func TestDirections(t *testing.T) {
	for _, tt := range []struct {
		text string
		want netem.Config
	}{
		{"delay: 88ms", netem.Config{Delay: 88 * ms}},
		{"delay: 1.5s", netem.Config{Delay: 1500 * ms}},
		{"delay: 1m30s", netem.Config{Delay: 90 * time.Second}},
		{"delay: 250us", netem.Config{Delay: ms / 4}},
		{"delay: 0", netem.Config{}},
		{"rate: none", netem.Config{}},
		{"rate: 1Mbit/s, queue: infinite", netem.Config{Rate: mbit}},
		{"rate: 1000kbit, queue: infinite", netem.Config{Rate: mbit}},
		{"rate: 1mbit, queue: infinite", netem.Config{Rate: mbit}},
		{"rate: 125kB/s, queue: {type: infinite}", netem.Config{Rate: mbit}},
		{"rate: 1Mbit", netem.Config{Rate: mbit, Queue: netem.DropTail{Bytes: 25000}}},
		{"rate: 1Mbit, overhead: 38", netem.Config{
			Rate: mbit, Overhead: 38, Queue: netem.DropTail{Bytes: 25000},
		}},
		{"rate: 1Mbit, queue: 26.4kB", netem.Config{
			Rate:  mbit,
			Queue: netem.DropTail{Bytes: 26400},
		}},
		{"rate: 1Mbit, queue: 2KiB", netem.Config{Rate: mbit, Queue: netem.DropTail{Bytes: 2048}}},
		{"rate: 1Mbit, queue: 50pkt", netem.Config{Rate: mbit, Queue: netem.DropTail{Packets: 50}}},
		{"rate: 1Mbit, queue: 20ms", netem.Config{Rate: mbit, Queue: netem.DropTail{Bytes: 2500}}},
		{"rate: 1Mbit, queue: [50pkt, 30kB]", netem.Config{
			Rate: mbit, Queue: netem.DropTail{Packets: 50, Bytes: 30000},
		}},
		{"delay: 50ms, rate: 1Mbit, queue: 1bdp", netem.Config{
			Delay: 50 * ms, Rate: mbit, Queue: netem.DropTail{Bytes: 12500},
		}},
		// A queue whose limit is not in packets has room for at least one packet.
		{"delay: 50ms, rate: 1Mbit, queue: 0bdp", netem.Config{
			Delay: 50 * ms, Rate: mbit, Queue: netem.DropTail{Bytes: 1500},
		}},
		{"rate: 1Mbit, queue: {type: drophead, limit: 9kB}", netem.Config{
			Rate: mbit, Queue: netem.DropHead{Bytes: 9000},
		}},
		{"rate: 1Mbit, queue: drophead", netem.Config{
			Rate: mbit, Queue: netem.DropHead{Bytes: 25000},
		}},
		{"rate: 1Mbit, queue: codel", netem.Config{Rate: mbit, Queue: netem.CoDel{}}},
		{
			"rate: 1Mbit, queue: {type: codel, limit: 100pkt, target: 6ms, interval: 90ms, ecn: on}",
			netem.Config{Rate: mbit, Queue: netem.CoDel{
				Target: 6 * ms, Interval: 90 * ms, Packets: 100, ECN: true,
			}},
		},
		{"rate: 1Mbit, queue: {type: pie, target: 20ms, update: 30ms, burst: 100ms}", netem.Config{
			Rate: mbit, Queue: netem.PIE{Target: 20 * ms, Update: 30 * ms, Burst: 100 * ms},
		}},
		{"rate: 1Mbit, queue: {type: fq_codel, flows: 16, quantum: 300}", netem.Config{
			Rate: mbit, Queue: netem.FQCoDel{Flows: 16, Quantum: 300},
		}},
		{
			"rate: 1Mbit, queue: {type: red, limit: 60pkt, min: 5pkt, max: 15pkt, max_p: 2%, " +
				"weight: 0.002, gentle: off, ecn: yes, mark_all: on}",
			netem.Config{Rate: mbit, Queue: netem.RED{
				Min: 5, Max: 15, InPackets: true, MaxP: .02, Weight: .002, Abrupt: true, ECN: true,
				Packets: 60, MarkAll: true,
			}},
		},
		{"rate: 1Mbit, queue: red", netem.Config{Rate: mbit, Queue: netem.RED{Bytes: 25000}}},
		{"rate: {steps: [[0s, 1Mbit], [30s, 3Mbit]]}, queue: 24ms", netem.Config{
			Rate: netem.Schedule{Steps: []netem.Step{{Rate: mbit}, {
				At:   30 * time.Second,
				Rate: 3 * mbit,
			}}},
			Queue: netem.DropTail{Bytes: 6000}, // the mean over a minute is 2 Mbit/s
		}},
		{"rate: {steps: [[0s, 1Mbit], [1s, 4Mbit]], every: 3s}, queue: 8ms", netem.Config{
			Rate: netem.Schedule{
				Steps: []netem.Step{{Rate: mbit}, {At: time.Second, Rate: 4 * mbit}},
				Every: 3 * time.Second,
			},
			Queue: netem.DropTail{Bytes: 3000},
		}},
		{"loss: none", netem.Config{}},
		{"loss: 0%", netem.Config{}},
		{"loss: 1%", netem.Config{Loss: netem.UniformLoss(.01)}},
		{"loss: {share: 1%}", netem.Config{Loss: netem.UniformLoss(.01)}},
		{"loss: {share: 1%, correlation: 25%}", netem.Config{
			Loss: netem.CorrelatedLoss{Share: .01, Correlation: .25},
		}},
		{"loss: every 1000", netem.Config{Loss: netem.PeriodicLoss{Every: 1000}}},
		{"loss: {every: 1000, first: 3}", netem.Config{Loss: netem.PeriodicLoss{
			Every: 1000,
			First: 3,
		}}},
		{`loss: "at [17, 18]"`, netem.Config{Loss: netem.ListedLoss{17, 18}}},
		{"loss: {at: [18, 17, 18]}", netem.Config{Loss: netem.ListedLoss{17, 18}}},
		{"loss: {bytes: [14600, 1MB]}", netem.Config{Loss: netem.ByteLoss{14600, 1_000_000}}},
		{"loss: {gilbert: {mean: 2%, burst: 5}}", netem.Config{Loss: netem.Bursts(.02, 5)}},
		{"loss: {gilbert: {p: 1%, r: 30%, good: 0.1%, bad: 50%}}", netem.Config{
			Loss: netem.GilbertElliott{P: .01, R: .3, Good: .001, Bad: .5},
		}},
		{"loss: {states: {p13: 1%}}", netem.Config{Loss: netem.FourStates{P13: .01, P31: .99}}},
		{"loss: {from: 10s, to: 12s, share: 50%}", netem.Config{Loss: netem.ByTime{
			Windows: []netem.Window{{From: 10 * time.Second, To: 12 * time.Second, Share: .5}},
		}}},
		{"loss: {windows: [{from: 1s, to: 2s}], repeat: 5s}", netem.Config{Loss: netem.ByTime{
			Windows: []netem.Window{{From: time.Second, To: 2 * time.Second, Share: 1}},
			Every:   5 * time.Second,
		}}},
		{"loss: {on_off: {on: 5s, off: 100ms, poisson: on}}", netem.Config{
			Loss: netem.OnOff{On: 5 * time.Second, Off: 100 * ms, Poisson: true},
		}},
		{`loss: {netem: "0.3% 25%"}`, netem.Config{
			Loss: netem.CorrelatedLoss{Share: .003, Correlation: .25},
		}},
		{"duplicate: 5%", netem.Config{Duplicate: .05}},
		{"duplicate: {share: 5%, correlation: 10%}", netem.Config{
			Duplicate: .05, Correlation: netem.Correlation{Duplicate: .1},
		}},
		{"corrupt: 5%", netem.Config{Corrupt: netem.Corrupt{Share: .05, Bits: 1}}},
		{"corrupt: {share: 5%, bits: 3, where: payload}", netem.Config{
			Corrupt: netem.Corrupt{Share: .05, Bits: 3, Where: netem.Payload},
		}},
		{"truncate: 1%", netem.Config{Truncate: .01}},
		{"delay: 10ms, reorder: 25%", netem.Config{
			Delay: 10 * ms, Reorder: netem.Reorder{Share: .25},
		}},
		{"reorder: {share: 25%, gap: 5}", netem.Config{
			Reorder: netem.Reorder{Share: .25, Gap: 5, Late: netem.Lateness},
		}},
		{"jitter: 5ms", netem.Config{Jitter: netem.UniformJitter(5 * ms)}},
		{"jitter: {normal: 20ms, overtake: on, correlation: 25%}", netem.Config{
			Jitter: netem.NormalJitter(20 * ms), Overtaking: true,
			Correlation: netem.Correlation{Jitter: .25},
		}},
		{"jitter: {pareto: 5ms}", netem.Config{Jitter: netem.RandomJitter{Size: 5 * ms, Shape: "pareto"}}},
		{"jitter: {paretonormal: 5ms}", netem.Config{Jitter: netem.RandomJitter{Size: 5 * ms, Shape: "paretonormal"}}},
		{"jitter: {steps: [[0s, 0ms], [10s, 30ms]]}", netem.Config{Jitter: netem.DelayTrace{
			Points: []netem.DelayPoint{{}, {At: 10 * time.Second, Delay: 30 * ms}},
		}}},
		{"policer: {rate: 12Mbit/s, burst: 15kB}", netem.Config{
			Policer: &netem.Policer{Rate: 12 * mbit, Burst: 15000},
		}},
		{`netem: "delay 100ms 20ms distribution normal loss 5%"`, netem.Config{
			Delay: 100 * ms, Jitter: netem.NormalJitter(20 * ms), Loss: netem.UniformLoss(.05),
		}},
		{`netem: "rate 1mbit limit 100"`, netem.Config{
			Rate: mbit, Queue: netem.DropTail{Packets: 100},
		}},
	} {
		got := one(t, down(tt.text))
		assert.Equal(t, tt.want, got.Path.Down, tt.text)
		_, err := netem.New(got.Path.Down, netem.Streams(1))
		assert.NoError(t, err, tt.text)
		assert.Equal(t, got.Path.Down.Delay, got.Path.Up.Delay, "up has the same delay")
		assert.Equal(t, netem.Config{Delay: got.Path.Up.Delay}, got.Path.Up, "and no impairments")
	}
}

// The direction up can be the same as down, completely or in parts.
func TestUp(t *testing.T) {
	const below = "delay: 20ms, rate: 1Mbit, queue: 50pkt, loss: 1%"
	for _, tt := range []struct {
		up   string
		want netem.Config
	}{
		{"same", netem.Config{
			Delay: 20 * ms, Rate: mbit, Queue: netem.DropTail{Packets: 50},
			Loss: netem.UniformLoss(.01),
		}},
		{"{delay: 5ms}", netem.Config{Delay: 5 * ms}},
		{"{delay: same, loss: same}", netem.Config{Delay: 20 * ms, Loss: netem.UniformLoss(.01)}},
		{"{rate: same, jitter: same, queue: infinite}", netem.Config{Rate: mbit}},
		{"delay 3ms", netem.Config{Delay: 3 * ms}},
	} {
		got := one(t, head+"path: {down: {"+below+"}, up: "+tt.up+"}\n"+oneFlow)
		assert.Equal(t, tt.want, got.Path.Up, tt.up)
	}
	f := parse(t, head+"path: {down: {"+below+"}, up: same}\n"+oneFlow)
	require.NoError(t, f.Set("path.up.loss=none"))
	require.NoError(t, f.Set("path.*.delay=7ms"))
	cells, err := f.Cells()
	require.NoError(t, err)
	got := cells[0].Path
	assert.InDelta(t, .01, float64(got.Down.Loss.(netem.UniformLoss)), 0)
	assert.Nil(t, got.Up.Loss)
	assert.Equal(t, 7*ms, got.Down.Delay)
	assert.Equal(t, 7*ms, got.Up.Delay)
	f = parse(t, whole)
	require.NoError(t, f.Set("path.up.loss=2%"))
	cells, err = f.Cells()
	require.NoError(t, err)
	assert.Equal(t, netem.Config{Delay: 10 * ms, Loss: netem.UniformLoss(.02)}, cells[0].Path.Up)
}

// usual returns a flow with all defaults.
func usual() plan.Flow {
	return plan.Flow{Name: "cubic", Protocol: plan.TCP, MSS: 1460, TCP: tcp.Config{Knobs: tcp.Knobs{
		Recovery: tcp.Recovery{
			Congestion: "cubic", Strategy: "rack", InitialWindow: 10, RTOMin: 200 * ms,
			RTOMax: 2 * time.Minute, RTOInitial: time.Second,
		},
		DelayedAck: 40 * ms,
		MTUProbing: tcp.MTUProbingOff, ECN: tcp.ECNOff,
	}}}
}

// Each text of a flow results in this flow.
func TestFlows(t *testing.T) {
	for _, tt := range []struct {
		text   string
		change func(f *plan.Flow)
	}{
		{"count: 1", func(*plan.Flow) {}},
		{"name: a", func(f *plan.Flow) { f.Name = "a" }},
		{"cc: reno", func(f *plan.Flow) { f.Name, f.TCP.Recovery.Congestion = "reno", "reno" }},
		{"cc: fixed, window: 20pkt", func(f *plan.Flow) {
			f.Name, f.TCP.Recovery.Congestion, f.TCP.Recovery.FixedWindow = "fixed", "fixed", 29200
		}},
		{"cc: fixed, window: 10kB", func(f *plan.Flow) {
			f.Name, f.TCP.Recovery.Congestion, f.TCP.Recovery.FixedWindow = "fixed", "fixed", 10000
		}},
		{"recovery: gbn", func(f *plan.Flow) { f.TCP.Recovery.Strategy = "gbn" }},
		{"mss: 536", func(f *plan.Flow) { f.MSS = 536 }},
		{"mss: 536B", func(f *plan.Flow) { f.MSS = 536 }},
		{"iw: 1", func(f *plan.Flow) { f.TCP.Recovery.InitialWindow = 1 }},
		{"iw: 3pkt", func(f *plan.Flow) { f.TCP.Recovery.InitialWindow = 3 }},
		{"ssthresh: 10", func(f *plan.Flow) { f.Ssthresh = 10 }},
		{"ssthresh: none", func(*plan.Flow) {}},
		{"start: 3s, stop: 5s", func(f *plan.Flow) {
			f.Start, f.Stop = 3*time.Second,
				5*time.Second
		}},
		{"direction: up", func(f *plan.Flow) { f.Upward = true }},
		{"delay: 15ms", func(f *plan.Flow) { f.Delay = 15 * ms }},
		{"delayed_ack: 100ms", func(f *plan.Flow) { f.TCP.DelayedAck = 100 * ms }},
		{"delayed_ack: off", func(f *plan.Flow) { f.TCP.DelayedAck = 1 }},
		{"rto_min: 10ms", func(f *plan.Flow) {
			f.TCP.Recovery.RTOMin, f.TCP.DelayedAck = 10*ms, 2*ms
		}},
		{"rto_initial: 3s", func(f *plan.Flow) { f.TCP.Recovery.RTOInitial = 3 * time.Second }},
		{"rto_max: 60s", func(f *plan.Flow) { f.TCP.Recovery.RTOMax = time.Minute }},
		{"sack: off", func(f *plan.Flow) { f.TCP.NoSACK = true }},
		{"timestamps: no", func(f *plan.Flow) { f.TCP.NoTimestamps = true }},
		{"window_scale: false", func(f *plan.Flow) { f.TCP.NoWindowScale = true }},
		{"nagle: off", func(f *plan.Flow) { f.TCP.NoDelay = true }},
		{"pacing: on", func(f *plan.Flow) { f.TCP.Recovery.Pacing = true }},
		{"ecn: on", func(f *plan.Flow) { f.TCP.ECN = tcp.ECNOn }},
		{"ecn: dctcp", func(f *plan.Flow) { f.TCP.ECN = tcp.ECNDCTCP }},
		{"ecn: passive", func(f *plan.Flow) { f.TCP.ECN = tcp.ECNPassive }},
		{"recv_buffer: 1MiB, send_buffer: 64kB", func(f *plan.Flow) {
			f.TCP.Buffers.Recv, f.TCP.Buffers.Send = 1<<20, 64000
		}},
		{
			"mtu_probing: blackhole",
			func(f *plan.Flow) { f.TCP.MTUProbing = tcp.MTUProbingBlackHole },
		},
		{"size: 10MB", func(f *plan.Flow) { f.App.Size = 10_000_000 }},
		{"size: 5185067", func(f *plan.Flow) { f.App.Size = 5_185_067 }},
		{"size: unlimited, app: bulk", func(*plan.Flow) {}},
		{"app: {rate: 1Mbit/s}", func(f *plan.Flow) { f.App.Rate = 1e6 }},
		{"app: {on: 1s, off: 2s}", func(f *plan.Flow) {
			f.App.On, f.App.Off = time.Second, 2*time.Second
		}},
		{"size: 10kB, app: {requests: 5, gap: 100ms}", func(f *plan.Flow) {
			f.App.Size, f.App.Requests, f.App.Gap = 10000, 5, 100*ms
		}},
	} {
		want := usual()
		tt.change(&want)
		assert.Equal(t, []plan.Flow{want}, one(t, flow(tt.text)).Flows, tt.text)
	}
}

// These are the settings of the founding documents' flows.
func TestFoundingFlows(t *testing.T) {
	for _, tt := range []struct {
		text     string
		protocol plan.Protocol
		want     plan.App
	}{
		{"protocol: rcp", plan.RCP, plan.App{Echo: &workload.EchoConfig{}}},
		{
			"protocol: rcp, echo: {writes: 10, min_bytes: 1, max_bytes: 9, min_pause: 1ms, max_pause: 2ms}, " +
				"rcp: {width: 64, packet_size: 512, tick: 5ms, timeout: 1s, classic_window: on, " +
				"timer: on, max_rto: 100ms, send_buffer: 1MB, recv_buffer: 2MB}",
			plan.RCP,
			plan.App{Echo: &workload.EchoConfig{
				Writes: 10, MinBytes: 1, MaxBytes: 9, MinPause: ms, MaxPause: 2 * ms,
				RCP: rcp.Config{
					Width: 64, PacketSize: 512, Tick: 5 * ms, Timeout: time.Second, Window: true,
					Timer: true, MaxRTO: 100 * ms, SendBuffer: 1e6, RecvBuffer: 2e6,
				},
			}},
		},
		{"protocol: rcp, burst: 16, rcp: {width: 8}", plan.RCP, plan.App{
			Burst: &workload.BurstConfig{Packets: 16, RCP: rcp.Config{Width: 8}},
		}},
		{"protocol: rdt", plan.RDT, plan.App{Objects: &workload.ObjectsConfig{}}},
		{
			"protocol: rdt, objects: {pairs: 3, small: 1kB, large: 2MB, smallest_first: on}, " +
				"rdt: {payload: 10000, window: 21, checksum: crc32c, timeout: 500ms, adaptive: on, " +
				"min_timeout: 20ms, max_timeout: 3s, duplicates: 2, selective: on, compress: on, " +
				"interleave: on, in_order: on, push: on, patience: 1min, cost: 0, buffer: 1MiB}",
			plan.RDT,
			plan.App{Objects: &workload.ObjectsConfig{
				Pairs: 3, Small: 1000, Large: 2e6, SmallestFirst: true, Buffer: 1 << 20, Cost: -1,
				RDT: rdt.Config{
					Payload: 10000, Window: 21, Checksum: rdt.CRC32C, Timeout: 500 * ms, Adaptive: true,
					MinTimeout: 20 * ms, MaxTimeout: 3 * time.Second, Duplicates: 2, Selective: true,
					Compress: true, Interleave: true, InOrder: true, Push: true, Patience: time.Minute,
				},
			}},
		},
		{"protocol: notebook", plan.Notebook, plan.App{
			Notebook: &plan.NotebookApp{},
		}},
		{
			"protocol: notebook, start: 5s, stop: 25s, notebook: {strategy: fixed, window: 1000, " +
				"sender_cost: 10us, receiver_cost: 0, held_cost: 1us, buffer: 500, recv_window: 2000}",
			plan.Notebook,
			plan.App{
				Notebook: &plan.NotebookApp{Fixed: 1000, NotebookConfig: workload.NotebookConfig{
					Duration: 20 * time.Second, SenderCost: 10 * time.Microsecond, ReceiverCost: -1, HeldCost: time.Microsecond,
					Buffer: 500, Window: 2000,
				}},
			},
		},
		{"protocol: notebook, notebook: {ssthresh: 500, cwnd: 2, even: on}", plan.Notebook, plan.App{
			Notebook: &plan.NotebookApp{
				Tahoe: workload.TahoeConfig{Ssthresh: 500, Cwnd: 2, Even: true},
			},
		}},
	} {
		f := one(t, flow(tt.text)).Flows[0]
		assert.Equal(t, tt.protocol, f.Protocol)
		assert.Equal(t, tt.want, f.App, tt.text)
	}
	f := one(t, flow("echo: {writes: 5}")).Flows[0]
	assert.Equal(t, plan.TCP, f.Protocol)
	assert.Equal(t, &workload.EchoConfig{Writes: 5}, f.App.Echo)
	f = one(t, flow("objects: {order: parallel, chunk: 500, read_cost: 25us}")).Flows[0]
	assert.Equal(t, &workload.ObjectsConfig{Arm: workload.Parallel, Chunk: 500, ReadCost: 25 * time.Microsecond}, f.App.Objects)
}

// Flows without names are named after their kind. Copies are numbered.
func TestFlowNames(t *testing.T) {
	for _, tt := range []struct {
		flows string
		want  string
	}{
		{"[{cc: reno}, {cc: cubic}]", "reno cubic"},
		{"[{cc: reno}, {cc: reno}]", "reno-1 reno-2"},
		{"[{cc: reno, count: 3}]", "reno-1 reno-2 reno-3"},
		{"[{name: x, count: 2}, {cc: reno}]", "x-1 x-2 reno"},
		{"[{name: reno}, {cc: reno}]", "reno reno-1"},
		{"[{name: reno-1}, {cc: reno, count: 2}]", "reno-1 reno-2 reno-3"},
	} {
		var names []string
		for _, f := range one(t, head+onePath+"flows: "+tt.flows+"\n").Flows {
			names = append(names, f.Name)
		}
		assert.Equal(t, tt.want, strings.Join(names, " "), tt.flows)
	}
	x := one(t, flow("count: 3, interval: 10s, start: 5s"))
	assert.Equal(t, 25*time.Second, x.Flows[2].Start)
}

// The hosts' jitter is one service time of the bottleneck, unless the file sets it.
func TestHostJitter(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
	}{
		{"", 12 * ms},
		{"host_jitter: 0.5svc\n", 6 * ms},
		{"host_jitter: 1ms\n", ms},
		{"host_jitter: 0\n", 0},
		{"host_jitter: off\n", 0},
		{"mtu: 9000\n", 72 * ms},
	} {
		assert.Equal(t, tt.want, one(t, whole+tt.text).HostJitter, tt.text)
	}
	assert.Zero(t, one(t, down("delay: 3ms")).HostJitter, "the path has no rate")
	assert.Equal(t, time.Minute, one(t, down("rate: 1bit/s")).HostJitter, "a packet takes 12000 s")
}

// JSON is valid YAML, so it can be used for experiments.
func TestJSON(t *testing.T) {
	got := one(t, `{"name": "x", "path": {"down": {"delay": "10ms", "rate": "1Mbit/s"}},
 "flows": [{"cc": "reno"}]}`)
	assert.Equal(t, one(t, whole), got)
}

// traces are files that experiments name.
var traces = files{
	"slow.trace": "100\n200\r\n200\n300\n", "empty.trace": "", "bad.trace": "1\n2\nx\n",
	"back.trace": "5\n4\n", "zero.trace": "0\n", "normal.dist": "# tc\n-8192 0 8192\n",
}

// Cells reads the files that an experiment names.
func TestFiles(t *testing.T) {
	f := parse(t, down("delay: 50ms, trace: slow.trace, queue: 1bdp"))
	_, err := f.Cells()
	assert.ErrorContains(t, err, "x.yaml:2:35: slow.trace: files cannot be read here")
	f.Load = traces.load
	cells, err := f.Cells()
	require.NoError(t, err)
	trace := netem.Opportunities{At: []time.Duration{100 * ms, 200 * ms, 200 * ms, 300 * ms}}
	assert.Equal(t, netem.Config{
		Delay: 50 * ms, Rate: trace,
		// the mean rate times 100 ms; the trace has four packets of 1500 bytes in 300 ms
		Queue: netem.DropTail{Bytes: 2000},
	}, cells[0].Path.Down)
	assert.Equal(t, 75*ms, cells[0].HostJitter)
	for name, want := range map[string]string{
		"gone.trace":  "gone.trace: there is no such file",
		"empty.trace": "empty.trace: no lines",
		"bad.trace":   `bad.trace:3: "x" is not a time`,
		"back.trace":  "back.trace:2: 4 ms follows 5 ms",
		"zero.trace":  "zero.trace:1: the last time is 0",
	} {
		require.NoError(t, f.Set("path.down.trace="+name))
		_, err = f.Cells()
		assert.ErrorContains(t, err, "--set: "+want)
	}
	f = parse(t, down("jitter: {table: normal.dist, width: 5ms}"))
	f.Load = traces.load
	cells, err = f.Cells()
	require.NoError(t, err)
	assert.Equal(t, netem.RandomJitter{
		Size: 5 * ms, Table: []int16{-8192, 0, 8192}, Shape: "normal.dist",
	}, cells[0].Path.Down.Jitter)
}

// A mahimahi command line describes a path. Data uses the downlink.
func TestMahimahi(t *testing.T) {
	f := parse(t, head+`mm: mm-delay 88 mm-loss downlink .01 mm-loss uplink 0.1 mm-loss uplink .5 `+
		`mm-link slow.trace slow.trace --downlink-queue=droptail --downlink-queue-args=bytes=26400 --`+
		"\n"+oneFlow)
	f.Load = traces.load
	cells, err := f.Cells()
	require.NoError(t, err)
	trace := netem.Opportunities{At: []time.Duration{100 * ms, 200 * ms, 200 * ms, 300 * ms}}
	assert.Equal(t, plan.Path{
		MTU: 1500,
		Down: netem.Config{
			Delay: 88 * ms, Rate: trace, Queue: netem.DropTail{Bytes: 26400},
			Loss: netem.UniformLoss(.01),
		},
		Up: netem.Config{Delay: 88 * ms, Rate: trace, Loss: netem.UniformLoss(.55)},
	}, cells[0].Path)
	for _, tt := range []struct {
		options string
		want    netem.Discipline
	}{
		{"--uplink-queue=drophead --uplink-queue-args=packets=10,bytes=20000", netem.DropHead{
			Packets: 10, Bytes: 20000,
		}},
		{"--uplink-queue codel --uplink-queue-args packets=10,target=50,interval=100", netem.CoDel{
			Packets: 10, Target: 50 * ms, Interval: 100 * ms,
		}},
		{`--uplink-queue="pie" --uplink-queue-args="qdelay_ref=20,max_burst=15"`, netem.PIE{
			Target: 20 * ms, Burst: 15 * ms, Update: 30 * ms,
		}},
		{"--uplink-queue=infinite --meter-all --uplink-log=up.log", nil},
	} {
		f = parse(t, head+"mm: 'mm-link slow.trace slow.trace --once "+tt.options+"'\n"+oneFlow)
		f.Load = traces.load
		cells, err = f.Cells()
		require.NoError(t, err, tt.options)
		assert.Equal(t, tt.want, cells[0].Path.Up.Queue)
		assert.True(t, cells[0].Path.Up.Rate.(netem.Opportunities).Once)
	}
	x := one(t, head+"mm: mm-delay 10 mm-delay 5 mm-onoff downlink 5 0.5\n"+oneFlow)
	assert.Equal(t, netem.Config{
		Delay: 15 * ms, Loss: netem.OnOff{On: 5 * time.Second, Off: 500 * ms, Poisson: true},
	}, x.Path.Down)
}

// With IPv6 the largest segment is 20 bytes shorter, and no link has an MTU below 1280.
func TestFamily(t *testing.T) {
	cells, err := parse(t, down("delay: 1ms")+"family: 6\n").Cells()
	require.NoError(t, err)
	assert.True(t, cells[0].Path.IPv6)
	assert.Equal(t, 1440, cells[0].Flows[0].MSS)
	assert.Equal(t, 1500, cells[0].HostMTU(&cells[0].Flows[0]))
	for text, want := range map[string]string{
		"family: 5":                      `"5" is not a version of IP; expected 4 or 6`,
		"{family: 6, mtu: 1279}":         "1279 bytes are below the minimum MTU of IPv6; expected 1280 or more",
		"{family: 6, flows.0.mss: 1219}": "segments of 1219 bytes need an MTU below the minimum of IPv6; expected 1220 bytes or more",
		"{family: 6, flows.0.mss: 1441}": "segments of 1441 bytes do not fit into an MTU of 1500; expected 1440 bytes at most",
	} {
		f := parse(t, down("delay: 1ms"))
		for set := range strings.SplitSeq(strings.Trim(strings.ReplaceAll(text, ": ", "="), "{}"), ", ") {
			require.NoError(t, f.Set(set))
		}
		_, err := f.Cells()
		require.ErrorContains(t, err, want)
	}
}
