package starlark_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/netem"
	"github.com/tidepool-net/tidepool/internal/sim"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// tutorial compiles one of the tutorial's scripts.
func tutorial(tb testing.TB, name string) *starlark.Program {
	tb.Helper()
	name = "../../../tutorial/" + name
	src, err := os.ReadFile(name)
	require.NoError(tb, err)
	p, err := starlark.Compile(name, src, nil)
	require.NoError(tb, err)
	return p
}

// compile compiles a test's own script.
func compile(tb testing.TB, src string) *starlark.Program {
	tb.Helper()
	p, err := starlark.Compile("my.star", []byte(src), nil)
	require.NoError(tb, err)
	return p
}

// must returns a run. Its first error ends the test.
func must(tb testing.TB, p *starlark.Program) *starlark.Run {
	tb.Helper()
	return p.Begin(starlark.Hooks{Failed: func(err error) { require.NoError(tb, err) }})
}

// event is any event of a controller.
type event interface{ deliver(c congestion.Controller) }

type (
	ack     congestion.Ack
	loss    congestion.Loss
	exit    congestion.Exit
	restart congestion.Restart
	segment congestion.LostSegment
	sent    congestion.Sent
	expiry  congestion.Timer
)

func (a ack) deliver(c congestion.Controller)  { c.OnAck((*congestion.Ack)(&a)) }
func (l loss) deliver(c congestion.Controller) { c.OnLoss((*congestion.Loss)(&l)) }
func (e exit) deliver(c congestion.Controller) { c.OnExit((*congestion.Exit)(&e)) }
func (r restart) deliver(c congestion.Controller) {
	if c, ok := c.(congestion.Restarter); ok {
		c.OnRestart((*congestion.Restart)(&r))
	}
}

func (s segment) deliver(c congestion.Controller) {
	if c, ok := c.(congestion.LossWatcher); ok {
		c.OnSegmentLost((*congestion.LostSegment)(&s))
	}
}

func (s sent) deliver(c congestion.Controller) {
	if c, ok := c.(congestion.SendWatcher); ok {
		c.OnSend(congestion.Sent(s))
	}
}

// deliver calls the timer when it is due, like the stack.
func (e expiry) deliver(c congestion.Controller) {
	if c, ok := c.(congestion.Timed); ok && c.Deadline().Due(e.Now) {
		c.OnTimer(congestion.Timer(e))
	}
}

// anything returns a random event.
func anything(r *rand.Rand, now clock.Time, cwnd, mss int) event {
	flight := r.IntN(2*cwnd + 1)
	switch r.IntN(20) {
	case 0:
		return loss{Now: now, Kind: congestion.Kind(r.IntN(4)), FlightSize: flight, MSS: mss}
	case 1:
		return exit{
			Now: now, InFlight: flight, MSS: mss, Spurious: r.IntN(3) == 0,
			Ceiling: r.IntN(2) * (mss + r.IntN(2*cwnd)),
		}
	case 2:
		return restart{
			Now: now, Idle: time.Duration(r.Int64N(2e9)), RTO: time.Second, MSS: mss,
			Unvalidated: r.IntN(4) == 0,
		}
	case 3:
		return segment{Now: now, Size: mss, TxInFlight: flight}
	case 4:
		return sent{Now: now, Size: mss, Segments: 1, MSS: mss, InFlight: flight}
	case 5:
		return expiry{Now: now, MSS: mss, InFlight: flight}
	}
	return ack{
		Now: now, Delivered: r.IntN(3 * mss << r.IntN(4)), Prior: flight, InFlight: flight / 2,
		MSS: mss, CwndLimited: r.IntN(4) > 0, Recovering: r.IntN(6) == 0,
		RTT: time.Duration(r.Int64N(3) * r.Int64N(1e9)), SRTT: 1e8, MinRTT: 1e7,
		TotalDelivered: r.Uint64N(1 << 40), Rate: r.Int64N(2) * r.Int64N(1e9),
	}
}

// TestTahoeStepByStep checks that tutorial/tahoe.star and the built-in Tahoe have the same window
// and the same threshold after any sequence of events.
func TestTahoeStepByStep(t *testing.T) {
	program := tutorial(t, "tahoe.star")
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		mss := 48 + r.IntN(9000)
		cfg := congestion.Config{
			MSS: mss, InitialWindow: mss * (1 + r.IntN(10)), MaxWindow: mss * (10 + r.IntN(100)),
		}
		if seed%4 == 0 {
			cfg.Cwnd, cfg.Ssthresh = mss*(1+r.IntN(200)), mss*(2+r.IntN(200))
		}
		want, err := congestion.New("tahoe", cfg)
		require.NoError(t, err)
		got := must(t, program).New(cfg)
		now := clock.Time(time.Hour)
		for step := range 3000 {
			if r.IntN(300) == 0 { // the path's MTU has changed
				mss = max(48, mss-r.IntN(mss)+r.IntN(500))
			}
			now = now.Add(time.Duration(r.Int64N(1e8)))
			e := anything(r, now, want.Cwnd(), mss)
			e.deliver(want)
			e.deliver(got)
			require.Equal(t, []int{want.Cwnd(), want.Ssthresh()}, []int{got.Cwnd(), got.Ssthresh()},
				"seed %d, step %d: %+v", seed, step, e)
		}
	}
}

// point is a controller's numbers after an event.
type point struct {
	at             clock.Time
	what           byte
	cwnd, ssthresh int
}

// tape records a controller's numbers and the events that cause them.
type tape struct {
	congestion.Controller
	points *[]point
	kinds  map[string]int
}

func (p *tape) note(at clock.Time, what byte, kind string) {
	*p.points = append(*p.points, point{at, what, p.Cwnd(), p.Ssthresh()})
	p.kinds[kind]++
}

func (p *tape) OnAck(a *congestion.Ack) { p.Controller.OnAck(a); p.note(a.Now, 'a', "ack") }
func (p *tape) OnLoss(l *congestion.Loss) {
	p.Controller.OnLoss(l)
	p.note(l.Now, 'l', "loss "+strconv.Itoa(int(l.Kind)))
}

func (p *tape) OnExit(e *congestion.Exit) {
	p.Controller.OnExit(e)
	p.note(e.Now, 'e', map[bool]string{true: "spurious", false: "exit"}[e.Spurious])
}

func (p *tape) OnRestart(r *congestion.Restart) {
	p.Controller.(congestion.Restarter).OnRestart(r)
	p.note(r.Now, 'r', "restart")
}

// recorded returns a function that creates controllers with create, and records their events and
// numbers in kinds and points.
func recorded(create congestion.Make, points *[]point, kinds map[string]int) congestion.Make {
	return func(cfg congestion.Config) congestion.Controller {
		c := &tape{create(cfg), points, kinds}
		c.note(0, 'b', "begin")
		return c
	}
}

// path is a lossy path with other impairments and a few outages, which cause timeouts.
type path struct {
	name string
	wire sim.LinkConfig
	tcp  tcp.Knobs
}

func paths() []path {
	lossy := func(loss float64) netem.Config {
		return netem.Config{
			Rate: netem.BitsPerSecond(12e6), Delay: 20 * time.Millisecond,
			Queue: netem.DropTail{Packets: 40}, Loss: netem.UniformLoss(loss),
		}
	}
	back := netem.Config{Delay: 20 * time.Millisecond}
	plain := tcp.Knobs{ECN: tcp.ECNOff}
	knobs := func(recovery string) tcp.Knobs {
		return tcp.Knobs{ECN: tcp.ECNOff, Recovery: tcp.Recovery{Strategy: recovery}}
	}
	unruly := lossy(0.01)
	unruly.Jitter, unruly.Overtaking = netem.UniformJitter(15*time.Millisecond), true
	marks := lossy(0)
	marks.Rate, marks.Queue = netem.BitsPerSecond(3e6), netem.CoDel{Packets: 200, ECN: true}
	return []path{
		{"one in a hundred", sim.LinkConfig{AB: lossy(0.01), BA: back}, plain},
		{"both ways", sim.LinkConfig{AB: lossy(0.01), BA: lossy(0.01)}, plain},
		{"one in ten", sim.LinkConfig{AB: lossy(0.1), BA: back}, plain},
		{"overtaking", sim.LinkConfig{AB: unruly, BA: back}, plain},
		{"gbn", sim.LinkConfig{AB: lossy(0.01), BA: back}, knobs("gbn")},
		{"newreno", sim.LinkConfig{AB: lossy(0.01), BA: back}, knobs("newreno")},
		{"sack", sim.LinkConfig{AB: lossy(0.01), BA: back}, knobs("sack")},
		{"marks", sim.LinkConfig{AB: marks, BA: back}, tcp.Knobs{ECN: tcp.ECNOn}},
	}
}

// transfer sends over a path with a controller, and returns the run's hash, the controller's
// numbers, and the number of events of each kind.
func transfer(t *testing.T, p path, seed uint64, create congestion.Make) (
	hash uint64, curve []point, kinds map[string]int,
) {
	t.Helper()
	kinds = map[string]int{}
	left := tcp.Config{Knobs: p.tcp, Algorithms: map[string]congestion.Make{
		"one": recorded(create, &curve, kinds),
	}}
	left.Recovery.Congestion = "one"
	l, err := sim.NewLine(seed, sim.LineConfig{
		Left: left, Right: tcp.Config{Knobs: p.tcp}, Links: []sim.LinkConfig{p.wire},
	})
	require.NoError(t, err)
	for i := range 4 { // outages
		from := l.Now().Add(time.Duration(3*i+2) * time.Second)
		l.At(from, func(clock.Time) { sim.End{Host: l.Left}.Cut(true) })
		l.At(from.Add(900*time.Millisecond), func(clock.Time) { sim.End{Host: l.Left}.Cut(false) })
	}
	sender := &sim.Bulk{
		Send: 5_000_000, MaxWrite: 400_000, MaxPause: 1500 * time.Millisecond, KeepOpen: true,
	}
	receiver := &sim.Bulk{KeepOpen: true}
	_, err = l.Bulk(sender, receiver, 80, 2*time.Minute)
	require.NoError(t, err)
	require.EqualValues(t, 5_000_000, receiver.Received, "%s, seed %d", p.name, seed)
	return l.Hash(), curve, kinds
}

// TestTahoeOnTheWire checks that tutorial/tahoe.star and the built-in Tahoe send the same packets
// over paths with losses, timeouts, idle periods and spurious recoveries.
func TestTahoeOnTheWire(t *testing.T) {
	program := tutorial(t, "tahoe.star")
	builtin, err := congestion.Find(nil, "tahoe")
	require.NoError(t, err)
	all := map[string]int{}
	seeds := uint64(1)
	if testenv.Long() {
		seeds = 3
	}
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			for seed := range seeds {
				hash, want, kinds := transfer(t, p, seed, builtin)
				again, got, _ := transfer(t, p, seed, must(t, program).New)
				require.Equal(t, want, got, "seed %d: the same curve", seed)
				require.Equal(t, hash, again, "seed %d: the same packets", seed)
				for k, n := range kinds {
					all[k] += n
				}
			}
		})
	}
	t.Log(all)
	for _, k := range []string{
		"begin", "ack", "loss 0", "loss 1", "loss 2", "loss 3", "exit", "spurious", "restart",
	} {
		assert.Positive(t, all[k], "the paths have caused %s", k)
	}
}
