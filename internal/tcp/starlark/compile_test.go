package starlark_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// TestEventAttributes checks every attribute of every event, with its unit.
func TestEventAttributes(t *testing.T) {
	var lines []string
	src := `
def init(state, conn): print(conn)
def on_ack(state, ack): print(ack)
def on_loss(state, loss): print(loss)
def on_exit(state, exit): print(exit)
def on_restart(state, restart): print(restart)
def on_segment_lost(state, segment): print(segment)
def on_send(state, sent): print(sent)
def on_timer(state, timer): print(timer)
print("read")
`
	run := compile(t, src).Begin(starlark.Hooks{
		Failed:  func(err error) { require.NoError(t, err) },
		Printed: func(now clock.Time, line string) { lines = append(lines, line) },
	})
	c := run.New(congestion.Config{
		MSS: 1000, InitialWindow: 10_000, MaxWindow: 1 << 20, SRTT: 20 * time.Millisecond, SACK: true,
	})
	start := clock.Time(time.Hour)
	for _, e := range []event{
		ack{
			Now: start, Delivered: 1, Prior: 2, InFlight: 3, MSS: 4, Lost: 5, RTT: 6e6, MinRTT: 7e6,
			TotalDelivered: 9, Rate: 10, AppLimited: true, PriorDelivered: 11, TxInFlight: 12,
			LostSince: 13, CwndLimited: true, Marked: 14, Echo: true, Stamped: true,
			SentAt: start.Add(-6 * time.Millisecond),
		},
		segment{
			Now: start.Add(500 * time.Millisecond), Seq: 1, Size: 2, TxInFlight: 3, LostSince: 4,
			TotalDelivered: 5, SentAt: start,
		},
		sent{Now: start.Add(600 * time.Millisecond), Seq: 1, Size: 2, Segments: 3, MSS: 4, InFlight: 5},
		loss{Now: start.Add(time.Second), Kind: congestion.TimeoutAgain, FlightSize: 1, InFlight: 2, MSS: 3},
		exit{Now: start.Add(2 * time.Second), InFlight: 1, MSS: 2, Spurious: true, Ceiling: 3},
		exit{Now: start.Add(2 * time.Second)},
		restart{Now: start.Add(3 * time.Second), Idle: 1e9, RTO: 2e9, Unvalidated: true, MSS: 1},
	} {
		e.deliver(c)
	}
	assert.Equal(t, []string{
		"read",
		"conn(mss = 1000, initial_window = 10000, max_window = 1048576, fixed_window = 0, " +
			"cwnd = 10000, ssthresh = 1048576, srtt = 0.02, min_rtt = None, sack = True, " +
			"paced = False, burst = 1)",
		"ack(now = 0.0, delivered = 1, cwnd_limited = True, recovering = False, mss = 4, " +
			"round = False, rtt = 0.006, min_rtt = 0.007, srtt = None, prior = 2, in_flight = 3, " +
			"lost = 5, rate = 10, app_limited = True, total_delivered = 9, prior_delivered = 11, " +
			"tx_in_flight = 12, lost_since = 13, echo = True, marked = 14, one_way = 0.0, " +
			"sent_at = -0.006)",
		"segment(now = 0.5, seq = 1, size = 2, tx_in_flight = 3, lost_since = 4, " +
			"app_limited = False, total_delivered = 5, sent_at = 0.0)",
		"sent(now = 0.6, seq = 1, size = 2, segments = 3, mss = 4, in_flight = 5, again = False)",
		`loss(now = 1.0, kind = "timeout again", flight_size = 1, in_flight = 2, mss = 3)`,
		"exit(now = 2.0, in_flight = 1, mss = 2, spurious = True, ceiling = 3, " +
			"cwnd_before = 10000, ssthresh_before = 0)",
		"exit(now = 2.0, in_flight = 0, mss = 0, spurious = False, ceiling = 0, " +
			"cwnd_before = 0, ssthresh_before = 0)",
		"restart(now = 3.0, idle = 1.0, rto = 2.0, unvalidated = True, mss = 1)",
	}, lines)
}

// TestReturnedValues checks the values that a script sets and returns, with rounding and limits.
func TestReturnedValues(t *testing.T) {
	cfg := congestion.Config{MSS: 1000, InitialWindow: 10_000, MaxWindow: 100_000}
	for _, tc := range []struct {
		body           string
		cwnd, ssthresh int
		rate           int64
	}{
		{"pass", 10_000, 0, 0},
		{"return 5000", 5000, 0, 0},
		{"return 5000.9", 5000, 0, 0},
		{"return (5000, 1e6)", 5000, 0, 1e6},
		{"return None", 10_000, 0, 0},
		{"state.cwnd = 0", 1000, 0, 0},
		{"state.cwnd = 999.9", 1000, 0, 0},
		{"state.cwnd = 1e9", 100_000, 0, 0},
		{"state.cwnd /= 3", 3333, 0, 0},
		{"state.cwnd = 4000.5\n  state.cwnd += 0.5", 4001, 0, 0},
		{"state.ssthresh = 1 << 40", 10_000, 1 << 40, 0},
		{"state.pacing_rate = 0.25", 10_000, 0, 1},
		{"state.pacing_rate = 1e300", 10_000, 0, 1 << 62},
		{"state.cwnd = conn.max_window\n  state.ssthresh = conn.ssthresh", 100_000, 100_000, 0},
	} {
		src := whole("def init(state, conn):\n  " + tc.body)
		c := must(t, compile(t, src)).New(cfg)
		got := []any{c.Cwnd(), c.Ssthresh(), c.PacingRate()}
		assert.Equal(t, []any{tc.cwnd, tc.ssthresh, tc.rate}, got, tc.body)
	}
}

// TestProducts checks that products have Starlark's values, whatever their internal representation.
func TestProducts(t *testing.T) {
	compile(t, whole(`
def eq(got, want):
    if got != want: fail("got %s, want %s" % (got, want))

def f(x, y=3 * 5, *more, k=2): return x * y * k

a, b, s, l = 6, 7.5, "ab", [1]
eq(a * a, 36); eq(a * b, 45.0); eq(b * b, 56.25); eq(a * s, "abababababab"); eq(l * 2, [1, 1])
eq(a * -1, -6); eq(-a * a, -36); eq((a + 1) * (a - 1), 35); eq(l * -a, []); eq((a * 0) * l, [])
eq(a * a * a // a, 36); eq(a / a * a, 6.0); eq(2 * a * (1 - 2 * a), -132)
eq(f(a), 180); eq(f(a, k=a * a), 3240); eq(f(*(l * 2)), 2); eq([x * x for x in l * 3 if x * x], [1, 1, 1])
eq({a * a: a * a}, {36: 36}); eq((lambda x: x * a)(a), 36); eq((l * a)[a * 0:a * 1:a // a * 1], l * a)
eq([10, 20][a * 0], 10); eq(a * a if a * a else b * b, 36); eq((a * l)[0], 1); eq(not a * a, False)
a *= a; eq(a, 36); l *= 2; eq(l, [1, 1]); s *= 2; eq(s, "abab")
d = {1: [6]}
d[1][0] *= a; eq(d, {1: [216]})
eq((1 << 400) * (1 << 400), 1 << 400 << 400)
`))
}

// TestState checks that each connection has its own random stream and its own state, which may hold
// numbers, lists, dicts, functions of the file, and the conn of init.
func TestState(t *testing.T) {
	program := compile(t, whole(`
def init(state, conn):
    state.conn = conn
    state.seen, state.last, state.phase = [], {"rtt": None}, slow
    state.draw = random()

def slow(state): state.phase = fast
def fast(state): state.cwnd = len(state.seen) * state.conn.mss

def on_ack(state, ack):
    state.seen.append(ack.rtt)
    state.last["rtt"] = ack.rtt
    state.phase(state)
    if hasattr(state, "rounds"): fail("another connection's")

def on_loss(state, loss):
    state.ssthresh = int(state.draw * (1 << 40)) + 1
`))
	run := must(t, program)
	draw := func(seed uint64) int {
		c := run.New(congestion.Config{MSS: 1000, InitialWindow: 10_000, Seed: seed})
		for range 3 {
			ack{Now: 1, MSS: 1000, RTT: 5}.deliver(c)
		}
		assert.Equal(t, 3000, c.Cwnd())
		loss{Now: 2, MSS: 1000}.deliver(c)
		return c.Ssthresh()
	}
	one, again, two := draw(1), draw(1), draw(2)
	assert.Equal(t, one, again)
	assert.NotEqual(t, one, two)
}

func TestPrintIsBounded(t *testing.T) {
	var lines []string
	run := compile(t, whole("def on_ack(state, ack):\n  print('x' * 2000)")).Begin(starlark.Hooks{
		Printed: func(_ clock.Time, line string) { lines = append(lines, line) },
	})
	c := run.New(congestion.Config{MSS: 1000, InitialWindow: 10_000})
	for range 12_000 {
		ack{Now: 1, MSS: 1000}.deliver(c)
	}
	require.NoError(t, run.Err())
	require.Len(t, lines, 10_001)
	assert.Len(t, lines[0], 1004)
	assert.Equal(t, "print: more than 10000 lines; the rest is dropped", lines[10_000])
}

// TestTutorialScripts checks that each of the tutorial's scripts compiles and is short.
func TestTutorialScripts(t *testing.T) {
	files, err := filepath.Glob("../../../tutorial/*.star")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 4)
	for _, f := range files {
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		lines := 0
		for _, b := range src {
			if b == '\n' {
				lines++
			}
		}
		assert.LessOrEqual(t, lines, 100, f)
		p, err := starlark.Compile(f, src, nil)
		require.NoError(t, err)
		assert.Equal(t, filepath.Base(f), p.Name())
	}
}
