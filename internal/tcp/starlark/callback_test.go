package starlark_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// TestTimer checks that a timer expires once, at the time that was set last, and that None stops it. A
// time that init sets is relative to the beginning of the connection.
func TestTimer(t *testing.T) {
	run := must(t, compile(t, whole(`
def init(state, conn): set_timer(0.25)
def on_ack(state, ack): set_timer(ack.rtt)
def on_timer(state, timer):
    state.cwnd = int(timer.now * 1e6) + timer.in_flight
    if timer.total_lost > 0:
        set_timer(2 * timer.srtt)
`)))
	now := clock.Time(time.Hour)
	c := run.New(congestion.Config{Now: now, MSS: 10, InitialWindow: 100})
	timed := c.(congestion.Timed)
	assert.Equal(t, now.Add(250*time.Millisecond), timed.Deadline())
	ack{Now: now, MSS: 10, RTT: 3 * time.Millisecond}.deliver(c)
	now = now.Add(3 * time.Millisecond)
	assert.Equal(t, now, timed.Deadline(), "the later setting counts")
	timed.OnTimer(congestion.Timer{
		Now: now, MSS: 10, InFlight: 7, TotalLost: 1, SRTT: 2 * time.Millisecond,
	})
	assert.Equal(t, 3007, c.Cwnd())
	now = now.Add(4 * time.Millisecond)
	assert.Equal(t, now, timed.Deadline())
	timed.OnTimer(congestion.Timer{Now: now, MSS: 10})
	assert.Equal(t, 7000, c.Cwnd())
	assert.Equal(t, clock.Never, timed.Deadline(), "it expires once")
	ack{Now: now, MSS: 10, RTT: time.Millisecond}.deliver(c)
	ack{Now: now, MSS: 10}.deliver(c) // without a sample, rtt is None
	assert.Equal(t, clock.Never, timed.Deadline())
}

// TestTooManyTimers checks that a timer that expires endlessly is an error.
func TestTooManyTimers(t *testing.T) {
	run := compile(t, whole("def init(state, conn): set_timer(1)\n"+
		"def on_timer(state, timer): set_timer(0.00001)\n")).Begin(starlark.Hooks{})
	c := run.New(congestion.Config{Now: 1, MSS: 10, InitialWindow: 100}).(congestion.Timed)
	testenv.NeedLong(t)
	n := 0
	for ; run.Err() == nil && n < 2_000_000; n++ {
		c.OnTimer(congestion.Timer{Now: c.Deadline(), MSS: 10})
	}
	assert.Equal(t, 1_000_001, n)
	assert.Equal(t, clock.Never, c.Deadline(), "a failed run has no timer")
	assert.ErrorContains(t, run.Err(), "my.star:2:1: the timer expired more than 1000000 times in a "+
		"connection: use longer times\n  in on_timer, 10.000000 s")
}

// TestOneWayDelay checks that delays are relative to the connection's first delay. They may be
// shorter or longer, and either clock may wrap.
func TestOneWayDelay(t *testing.T) {
	run := must(t, compile(t, whole(
		"def on_ack(state, ack): state.ssthresh = int(1000 + 1000 * (ack.one_way or 0))")))
	c := run.New(congestion.Config{MSS: 10, InitialWindow: 100})
	for i, tc := range []struct {
		transit uint32
		stamped bool
		want    int
	}{{0, false, 1000}, {1<<32 - 2, true, 1000}, {3, true, 1005}, {1<<32 - 9, true, 993}, {1, false, 1000}} {
		ack{Now: clock.Time(i + 1), MSS: 10, Transit: tc.transit, Stamped: tc.stamped}.deliver(c)
		assert.Equal(t, tc.want, c.Ssthresh(), i)
	}
}

// TestUnreportedMarks checks that the number of marks is None, not 0, if the receiver does not
// report it.
func TestUnreportedMarks(t *testing.T) {
	run := must(t, compile(t, whole(
		"def on_ack(state, ack): state.ssthresh = 5 if ack.marked == None else 7 + ack.marked")))
	c := run.New(congestion.Config{MSS: 10, InitialWindow: 100})
	ack{Now: 1, MSS: 10, Marked: congestion.UnknownMarks}.deliver(c)
	assert.Equal(t, 5, c.Ssthresh())
	ack{Now: 1, MSS: 10}.deliver(c)
	assert.Equal(t, 7, c.Ssthresh())
}

// TestParams checks that a parameter has the given value or its default, converted to the default's
// type if possible.
func TestParams(t *testing.T) {
	src := []byte(whole("B = param('beta', 0.5)\nN = param('n', 3)\n" +
		"def on_ack(state, ack): return int(B * 1000) + 10000 * N\n"))
	for _, tc := range []struct {
		given starlark.Params
		want  int
	}{
		{nil, 30_500},
		{starlark.Params{"beta": "0.7"}, 30_700},
		{starlark.Params{"beta": "1", "n": "2"}, 21_000},
		{starlark.Params{"n": "1e1"}, 100_500},
		{starlark.Params{"n": "0.5"}, 5_500},
	} {
		p, err := starlark.Compile("my.star", src, tc.given)
		require.NoError(t, err)
		c := must(t, p).New(congestion.Config{MSS: 10, InitialWindow: 100})
		ack{Now: 1, MSS: 10}.deliver(c)
		assert.Equal(t, tc.want, c.Cwnd(), tc.given)
	}
	for _, tc := range []struct {
		param, value, want string
	}{
		{"betta", "1", "my.star: the script has no param(\"betta\", …) (did you mean beta?); it has beta, n"},
		{"beta", "fast", `my.star:1:10: "fast" is not a parameter's value: must be a finite number such as 0.5`},
		{"beta", "nan", `"nan" is not a parameter's value`},
		{"n", "1e999", `"1e999" is not a parameter's value`},
	} {
		_, err := starlark.Compile("my.star", src, starlark.Params{tc.param: tc.value})
		var e *starlark.Error
		require.ErrorAs(t, err, &e, tc.want)
		assert.Contains(t, err.Error(), tc.want)
		assert.Equal(t, tc.param, e.Param)
	}
}

// TestRecord checks that each recorded number is passed on with its name, for one connection or
// several.
func TestRecord(t *testing.T) {
	var got []string
	var values []float64
	run := compile(t, whole("def init(state, conn): record('a', 1)\n"+
		"def on_ack(state, ack):\n  record('b_2', ack.mss / 4)")).Begin(starlark.Hooks{
		Recorded: func(name string, value float64) {
			got, values = append(got, name), append(values, value)
		},
	})
	for range 2 {
		ack{Now: 1, MSS: 10}.deliver(run.New(congestion.Config{MSS: 10, InitialWindow: 100}))
	}
	require.NoError(t, run.Err())
	assert.Equal(t, "a b_2 a b_2", strings.Join(got, " "))
	assert.Equal(t, []float64{1, 2.5, 1, 2.5}, values)
	assert.False(t, math.IsNaN(values[1]))
}
