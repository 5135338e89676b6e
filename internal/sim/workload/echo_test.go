package workload_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/rcp"
	"github.com/tidepool-net/tidepool/internal/sim/workload"
)

// means are the means over several trials.
type means struct{ sent, data, acks, n, seconds float64 }

// mean repeats the document's experiment with a loss p in each direction.
func mean(t *testing.T, trials int, p float64, cfg rcp.Config) (m means) {
	t.Helper()
	for seed := range uint64(trials) {
		r, _, err := workload.EchoNetwork{There: p, Back: p}.Run(seed, workload.EchoConfig{RCP: cfg})
		require.NoError(t, err)
		require.True(t, r.Finished, "seed %d: %s", seed, r.Failure)
		require.Equal(t, r.Written, r.Echoed)
		require.Equal(t, r.Sent, r.Data+r.Acks)
		m.sent += float64(r.Sent)
		m.data += float64(r.Data)
		m.acks += float64(r.Acks)
		m.n += float64(r.Packets())
		m.seconds += r.Took.Seconds()
	}
	k := float64(trials)
	return means{m.sent / k, m.data / k, m.acks / k, m.n / k, m.seconds / k}
}

// trials returns the number of trials, which is smaller in a short run.
func trials(few, many int) int {
	if testenv.Long() {
		return many
	}
	return few
}

// Every packet is repeated each tick until it has arrived, 1/(1-p) times, and then until an
// acknowledgment of it has arrived, p/(1-p) times more. So N(1+p)/(1-p) packets are sent, and one
// ACK per tick. At any loss rate, the run takes as long as a thousand pauses.
func TestFenceSendsTheClosedForm(t *testing.T) {
	for _, p := range []float64{0, .1, .2, .3, .4, .5, .6} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			k := trials(4, 30)
			within := .03 * max(1, math.Sqrt(10/float64(k)))
			m := mean(t, k, p, rcp.Config{})
			want := m.n * (1 + p) / (1 - p)
			t.Logf("%.0f data of %.0f, %.0f in all, %.2f s", m.data, want, m.sent, m.seconds)
			assert.InEpsilon(t, want, m.data, within)
			assert.InEpsilon(t, want+m.seconds*100, m.sent, within)
			assert.InEpsilon(t, 1598, m.n, .02)
			assert.InEpsilon(t, m.seconds*100, m.acks, .01)
			assert.Greater(t, m.seconds, 10.4)
			assert.Less(t, m.seconds, 10.8)
		})
	}
}

// In the document's table, the window sends 1.29 times as much at 50 %, and 1.42 at 60 %.
func TestWindowSendsMore(t *testing.T) {
	testenv.NeedNoRace(t)
	for _, c := range []struct{ p, ratio, within float64 }{
		{.5, 1.31, .03}, {.6, 1.39, .06},
	} {
		k := trials(4, 100)
		if k == 4 {
			c.within = .1
		}
		sliding := mean(t, k, c.p, rcp.Config{})
		window := mean(t, k, c.p, rcp.Config{Window: true})
		t.Logf("p %.1f: window %.0f, fence %.0f: %.3f", c.p, window.sent, sliding.sent,
			window.sent/sliding.sent)
		assert.InDelta(t, c.ratio, window.sent/sliding.sent, c.within)
	}
}

// A timer waits for the acknowledgment, so it sends little more than N/(1-p), the minimum of any
// scheme. But it backs off, and a fence often waits for lost packets: from 50 % on, that takes
// longer than the client's writing.
func TestTimerSendsLessAndTakesLonger(t *testing.T) {
	testenv.NeedNoRace(t)
	took := map[float64]float64{}
	for _, p := range []float64{.1, .3, .5} {
		blind := mean(t, trials(3, 10), p, rcp.Config{})
		timed := mean(t, trials(3, 10), p, rcp.Config{Timer: true})
		t.Logf("p %.1f: blind %.0f in %.1f s, timed %.0f in %.1f s, least %.0f", p, blind.data,
			blind.seconds, timed.data, timed.seconds, timed.n/(1-p))
		assert.Less(t, timed.data, .95*blind.data)
		assert.Greater(t, timed.data, .98*timed.n/(1-p))
		assert.Less(t, timed.data, 1.08*timed.n/(1-p))
		took[p] = timed.seconds / blind.seconds
	}
	assert.InDelta(t, 1, took[.1], .02)
	assert.Greater(t, took[.5], 1.4)
}

// If a fence is narrower than the number of packets that a loss delays, it holds the client back: a
// width of one does, a width of 32 does not. A wider fence changes nothing.
func TestWidthOfTheFence(t *testing.T) {
	wide := mean(t, 2, .3, rcp.Config{Width: 64})
	document := mean(t, 2, .3, rcp.Config{})
	narrow := mean(t, 2, .3, rcp.Config{Width: 1})
	assert.InEpsilon(t, document.seconds, wide.seconds, .005)
	assert.Greater(t, narrow.seconds, 2*document.seconds)
	assert.InEpsilon(t, document.data, narrow.data, .05)
}

// With a longer tick, each packet carries more data and is repeated less often.
func TestLongerTick(t *testing.T) {
	m := mean(t, 5, 0, rcp.Config{Tick: 20 * time.Millisecond, PacketSize: 1300})
	assert.InEpsilon(t, m.seconds*50, m.acks, .02)
	assert.InEpsilon(t, m.seconds*50, m.n, .02)
}

func TestEchoSeeds(t *testing.T) {
	n := workload.EchoNetwork{There: .3, Back: .2}
	one, hash, err := n.Run(1, workload.EchoConfig{})
	require.NoError(t, err)
	again, same, err := n.Run(1, workload.EchoConfig{})
	require.NoError(t, err)
	assert.Equal(t, one, again)
	assert.Equal(t, hash, same)
	_, other, err := n.Run(2, workload.EchoConfig{})
	require.NoError(t, err)
	assert.NotEqual(t, hash, other)

	// Trials are paired: the client writes the same over any transport.
	window, other, err := n.Run(1, workload.EchoConfig{RCP: rcp.Config{Window: true}})
	require.NoError(t, err)
	assert.Equal(t, one.Written, window.Written)
	assert.NotEqual(t, hash, other)
}

// If an echo cannot finish, the result has the reason: silence, or the time limit.
func TestUnfinishedEcho(t *testing.T) {
	for _, c := range []struct {
		name string
		n    workload.EchoNetwork
		says string
	}{
		{"all requests lost", workload.EchoNetwork{There: 1}, "the RCP peer does not answer: "},
		{"all answers lost", workload.EchoNetwork{Back: 1}, "the RCP peer does not answer: "},
		{"time limit", workload.EchoNetwork{Limit: time.Second}, "not finished: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, _, err := c.n.Run(1, workload.EchoConfig{})
			require.NoError(t, err)
			assert.False(t, r.Finished)
			assert.Contains(t, r.Failure, c.says)
			assert.Contains(t, r.Failure, "of 1000 writes")
			assert.NotZero(t, r.Sent)
			assert.Positive(t, r.Took)
			assert.LessOrEqual(t, r.Took, time.Second)
		})
	}
}

func TestInvalidEchoConfigs(t *testing.T) {
	for _, c := range []workload.EchoConfig{
		{Writes: -1},
		{Writes: 1 << 30},
		{MinBytes: 500, MaxBytes: 400},
		{MaxBytes: 1 << 20},
		{MinPause: -1},
		{MinPause: 30 * time.Millisecond, MaxPause: 20 * time.Millisecond},
	} {
		_, _, err := workload.EchoNetwork{}.Run(1, c)
		assert.ErrorIs(t, err, workload.ErrEchoConfig, "%+v", c)
		_, _, err = workload.EchoNetwork{}.RunTCP(1, c)
		assert.ErrorIs(t, err, workload.ErrEchoConfig, "%+v", c)
	}
	_, _, err := workload.EchoNetwork{}.Run(1, workload.EchoConfig{RCP: rcp.Config{Width: -1}})
	assert.ErrorIs(t, err, rcp.ErrConfig)
	_, _, err = workload.EchoNetwork{}.RunBurst(1, workload.BurstConfig{Packets: -1})
	assert.ErrorIs(t, err, workload.ErrEchoConfig)
	_, _, err = workload.EchoNetwork{There: 2}.Run(1, workload.EchoConfig{})
	assert.Error(t, err)
}
