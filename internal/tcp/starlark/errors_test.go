package starlark_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/tcp/congestion"
	"github.com/tidepool-net/tidepool/internal/tcp/starlark"
)

// whole adds the functions that every script must have.
func whole(src string) string {
	for _, f := range []string{"on_ack(state, ack)", "on_loss(state, loss)"} {
		if !strings.Contains(src, "def "+f[:strings.Index(f, "(")]) {
			src += "\ndef " + f + ": pass\n"
		}
	}
	return src
}

// TestCompileErrors checks the file, line, column and expectation in each error.
func TestCompileErrors(t *testing.T) {
	for _, tc := range []struct{ src, want string }{
		{"", "my.star: no function on_ack: must define def on_ack(state, ack)"},
		{"def on_ack(state, ack): pass", "my.star: no function on_loss: must define def on_loss(state, loss)"},
		{"def on_ack(state, ack)\n  pass", "my.star:1:23: got newline, want ':'"},
		{"x = (1,\n  2\n\n", "my.star:2:4: got end of file, want "},
		{"if 1: # µ\n\n", "my.star:1:10: got "},
		{whole("x = 1 +"), "my.star:1:8: got newline, want primary expression"},
		{"on_ack = 3", "my.star: on_ack is of type int: must be def on_ack(state, ack)"},
		{whole("def on_ack(ack): pass"), "my.star:1:1: on_ack has other parameters: must be def on_ack(state, ack)"},
		{whole("def init(state, *conn): pass"), "my.star:1:1: init has other parameters: must be def init(state, conn)"},
		{whole("def on_lose(state, l): pass"), "my.star:1:1: on_lose: nothing calls it (did you mean on_loss?); must be one of init, on_ack"},
		{whole("def on_ack(state, ack):\n  state.cwnd += mss"), "my.star:2:17: undefined: mss"},
		{whole("def on_ack(state, ack):\n  if ack.kind == TIMEOT: pass"), "my.star:2:18: undefined: TIMEOT (did you mean TIMEOUT?)"},
		{whole("x = maths.sqrt(2)"), "my.star:1:5: undefined: maths (did you mean math?)"},
		{whole("x = 1 / 0"), "my.star:1:7: floating-point division by zero"},
		{whole("fail('no')"), "my.star:1:5: fail: no"},
		{whole("while True: pass"), "my.star:1:1: more than 100000 steps in one call: look"},
		{whole("x = [0] * 999999999"), "my.star:1:9: 999999999 * 1 values: must be at most 65536"},
		{whole("x = [0]\nfor i in range(60): x = x + x"), "my.star:2:1: x holds "},
		{whole("load('other.star', 'f')"), "my.star:1:6: load: the whole algorithm must be in one file"},
		{whole("x = random()"), "my.star:1:11: random belongs to a connection"},
		{whole("record('a', 1)"), "my.star:1:7: record belongs to a connection: call it in a function"},
		{whole("set_timer(1)"), "my.star:1:10: set_timer belongs to a connection"},
		{whole("x = param('a')"), "my.star:1:10: param: missing argument for default"},
		{whole("x = param('a', 'b')"), "the default of param \"a\" = \"b\", which is of type string: must be a number"},
		{whole("x = param('a b', 1)"), "param: the name must be 1 to 32 letters"},
		{whole("x = param('a', 1)\ny = param('a', 1)"), "my.star:2:10: param(\"a\") already exists"},
		{whole("for i in range(99): param('a%d' % i, 1)"), "param(\"a64\"): a script has at most 64 parameters"},
		{whole("def f(): return param('a', 1)\nf()"), "param: call it outside of functions"},
		{whole("x = list(range(1000000000))"), "my.star:1:15: range of 1000000000 values: must be at most 65536"},
		{whole("def f(): return f()\nf()"), "my.star:1:17: function f called recursively"},
		{strings.Repeat("#", 70_000), "my.star: a script of 70000 bytes: must be at most 65536"},
	} {
		_, err := starlark.Compile("my.star", []byte(tc.src), nil)
		var e *starlark.Error
		if assert.ErrorAs(t, err, &e, tc.src) {
			assert.Contains(t, err.Error(), tc.want)
		}
	}
	_, err := starlark.Compile("my.star", []byte(whole(strings.Repeat("def on_ack(state, ack): return y\n", 30))), nil)
	assert.Equal(t, 10, strings.Count(err.Error(), "undefined: y"))
	assert.Contains(t, err.Error(), "and 20 more")
}

// TestDeepSource checks that the largest source does not overflow the stack of the recursive
// parser, resolver and compiler.
func TestDeepSource(t *testing.T) {
	for _, tc := range []struct{ open, middle, end string }{
		{"(", "1", ")"},
		{"[", "", "]"},
		{"{1:", "1", "}"},
		{"-", "1", ""},
		{"not ", "1", ""},
		{"lambda:", "1", ""},
		{"f(", "1", ")"},
		{"1+", "1", ""},
		{"x[", "1", "]"},
		{"1 if 1 else ", "1", ""},
		{"x.y", "", ""},
		{"[x for x in ", "[]", "]"},
	} {
		n := 65_000 / (len(tc.open) + len(tc.end))
		src := "x = " + strings.Repeat(tc.open, n) + tc.middle + strings.Repeat(tc.end, n)
		_, err := starlark.Compile("deep.star", []byte(src), nil)
		assert.Error(t, err, tc.open)
	}
}

// failure sends events to a controller of the script until the run fails, and returns the error.
func failure(t *testing.T, src string) string {
	t.Helper()
	var failed []error
	run := compile(t, whole(src)).Begin(starlark.Hooks{
		Failed: func(err error) { failed = append(failed, err) },
	})
	c := run.New(congestion.Config{MSS: 1000, InitialWindow: 10_000, MaxWindow: 1 << 20})
	now := clock.Time(time.Hour)
	for i := range 3 {
		for _, e := range []event{
			ack{Now: now, MSS: 1000, Delivered: 2000},
			loss{Now: now, MSS: 1000},
			exit{Now: now, MSS: 1000},
			restart{Now: now, MSS: 1000},
			segment{Now: now},
			sent{Now: now, MSS: 1000},
			expiry{Now: now, MSS: 1000},
		} {
			e.deliver(c)
			if i == 2 {
				assert.GreaterOrEqual(t, c.Cwnd(), 1000, src)
			}
		}
		now = now.Add(250 * time.Millisecond)
	}
	require.Len(t, failed, 1, src)
	var e *starlark.Error
	require.ErrorAs(t, failed[0], &e, src)
	assert.Equal(t, run.Err(), failed[0])
	return failed[0].Error()
}

// TestRuntimeErrors checks that an invalid value is reported where it is set, with the call stack.
func TestRuntimeErrors(t *testing.T) {
	for _, tc := range []struct{ body, want string }{
		{"state.cwnd = -3", "my.star:2:8: state.cwnd = -3: must be a number, 0 or more"},
		{"state.cwnd = '10'", `my.star:2:8: state.cwnd = "10", which is of type string: must be a number`},
		{"state.cwnd = None", "state.cwnd = None, which is of type NoneType: must be a number"},
		{"state.cwnd = True", "state.cwnd = True, which is of type bool: must be a number"},
		{"state.cwnd = float('nan')", "state.cwnd = nan: must be a finite number"},
		{"state.ssthresh = float('inf')", "my.star:2:8: state.ssthresh = +inf: must be a finite number"},
		{"state.pacing_rate = -1.5", "state.pacing_rate = -1.5: must be a number, 0 or more"},
		{"state.cwnd = 1 << 60", "state.cwnd = 1152921504606846976: must be a number of at most 2⁵³"},
		{"state.acked = ack", "state.acked = ack(now = 0.0, "},
		{"state.cwdn = 3", "my.star:2:8: state has no attribute cwdn (did you mean cwnd?); init"},
		{"return 'x'", `my.star:1:1: on_ack returned an invalid value: "x", which is of type string: must be nothing, a window in bytes, or a pair`},
		{"return (1, 2, 3)", "(1, 2, 3), which is of type tuple: must be nothing"},
		{"return (5000, -1)", "state.pacing_rate = -1: must be a number"},
		{"return float('nan')", "state.cwnd = nan: must be a finite number"},
		{"while True: pass", "my.star:1:1: more than 100000 steps in one call: look"},
		{"ack.cwnd_limted", "my.star:2:6: ack has no .cwnd_limted field or method (did you mean .cwnd_limited?)"},
		{"ack.mss = 5", "my.star:2:6: can't assign to .mss field of ack"},
		{"n = 0\n  while n < 5:\n    n += state.acked", "my.star:4:15: more than 100000 steps"},
		{"state.x", "state has no .x field or method"},
		{"fail('enough')", "my.star:2:7: fail: enough"},
		{"1 // 0", "my.star:2:5: floored division by zero"},
		{"G.append(ack)", "my.star:2:11: append: cannot append to frozen list"},
		{"state.own = [ack]", "state.own holds a value of type ack: must be numbers, strings, lists and dicts"},
		{"state.own = ack", "state.own holds a value of type ack"},
		{"state.own = state", "state.own holds a value of type state"},
		{"state.own = lambda: ack", "state.own holds a function with captured"},
		{"state.own = lambda x=ack: x", "state.own holds a function with captured"},
		{"state.own = [1].append", "state.own holds a value of type builtin_function_or_method"},
		{"state.own = [0] * 70000", "my.star:2:19: 70000 * 1 values: must be at most 65536"},
		{"state.own = 1 << 50\n  state.own = [0, 1] * state.own", "my.star:3:22: 1125899906842624"},
		{"state.own = 'ab'\n  state.own *= 1 << 30", "my.star:3:13: 1073741824 * 2 values"},
		{"x = 1 << 500\n  x *= x * x * x * x * x * x * x * x", "my.star:3:5: a product of 4502 bits: must be at most 4096"},
		{"x = [k * 'x' for k in [1 << 60] if k * k]", "my.star:2:10: 1152921504606846976"},
		{"x = {1: 1 if 2 else 3, 'a': (1 << 99) * [0]}", "my.star:2:41: 633825300114"},
		{"x = ack.mss * None", "my.star:2:15: unknown binary op: int * NoneType"},
		{"x = 'a' * 'b'", "my.star:2:11: unknown binary op: string * string"},
		{"state.own = [[0] * 60000] * 2", "state.own holds more than 65536 values"},
		{"state.own = [0] * 60000\n  state.own = state.own + state.own", "state.own holds 120000 values"},
		{"state.own = 'x' * 900000\n  state.own += state.own", "state.own holds a string of 1800000 bytes: must be at most 1048576"},
		{"x = 1 << 500\n  for i in range(99): x = (x << 500) + 1", "x holds an integer of"},
		{"state.own = 1\n  for i in range(99): state.own = (state.own + 2) * (state.own + 2)", "my.star:3:51: a product of 7110 bits"},
		{"x = [0]\n  for i in range(99): x.extend(x)", "x holds "},
		{"x = []\n  for i in range(99): x = [x]\n  state.own = x", "lists nested more than"},
		{"math.sqrt('x')", "sqrt: for parameter 1: got string, want float or int"},
		{"math.log(-1)", "math.log(-1) is not a number"},
		{"math.cbrt('x')", "cbrt: got string, which is not a number"},
		{"math.pow(1)", "pow: got 1 arguments, want 2"},
		{"min(1, ack.rtt)", "my.star:2:6: min: "},
		{"random(3)", "random: got 1 arguments, want 0"},
		{"record('alpha', float('nan'))", "my.star:2:9: record(\"alpha\") = nan: must be a finite number"},
		{"record('alpha', True)", "record(\"alpha\") = True, which is of type bool: must be a number"},
		{"record('alpha')", "record: got 1 arguments: must be a column's name and a number, such as record("},
		{"record(1, 2)", "record: the name is of type int: must be a string"},
		{"record('a,b', 2)", "record(\"a,b\"): the name must be 1 to 32 letters, digits or _, and begin with a letter"},
		{"record('x' * 33, 2)", "the name must be 1 to 32 letters"},
		{"record('', 2)", "the name must be 1 to 32 letters"},
		{"for i in range(99): record('x%d' % i, i)", "record(\"x16\"): a script records at most 16 columns; it already has x0, x1,"},
		{"set_timer(-1)", "my.star:2:12: set_timer(-1): must be 1e-05 to 3600 seconds"},
		{"set_timer(0)", "set_timer(0): must be 1e-05 to 3600 seconds"},
		{"set_timer(1e9)", "set_timer(1e+09): must be 1e-05 to 3600 seconds"},
		{"set_timer(float('nan'))", "set_timer = nan: must be a finite number"},
		{"set_timer('1')", "set_timer = \"1\", which is of type string: must be a number"},
		{"set_timer()", "set_timer: got 0 positional and 0 named arguments: must be one positional: seconds, or None to stop the timer"},
		{"param('x', 1)", "param: call it outside of functions"},
		{"{ack: 1}", "unhashable: ack"},
		{"{state: 1}", "unhashable: state"},
	} {
		got := failure(t, "def on_ack(state, ack):\n  "+tc.body+
			"\nG = []\ndef init(state, conn): state.own = 0\ndef on_timer(state, timer): pass")
		assert.Contains(t, got, tc.want, tc.body)
		assert.Contains(t, got, "\n  in on_ack, 0.000000 s after the connection's first event")
	}
}

func TestEveryFunctionMayFail(t *testing.T) {
	for _, f := range []string{"init", "on_loss", "on_exit", "on_restart", "on_segment_lost", "on_send", "on_timer"} {
		more := ""
		if f == "on_timer" {
			more = "\ndef init(state, conn): set_timer(0.1)"
		}
		got := failure(t, "def "+f+"(state, what):\n  state.cwnd = -1"+more)
		assert.Contains(t, got, "my.star:2:8: state.cwnd = -1: must")
		assert.Contains(t, got, "\n  in "+f)
	}
	got := failure(t, "def on_ack(state, ack): set_timer(1)")
	assert.Contains(t, got, "set_timer: the script has no function for it: define def on_timer(state, timer)")
	got = failure(t, "def init(state, conn):\n  state.sstresh = 1")
	assert.Contains(t, got, "my.star:2:8: state.sstresh (did you mean ssthresh?)")
}

// TestBacktrace checks Starlark's backtrace, with the outermost call first, and its time.
func TestBacktrace(t *testing.T) {
	got := failure(t, `
def init(state, conn):
    state.n = 0

def halve(n):
    return n // 0

def on_ack(state, ack):
    state.n += 1
    if state.n == 3:
        state.cwnd = halve(state.cwnd)
`)
	assert.Equal(t, `my.star:6:14: floored division by zero
  in on_ack, 0.500000 s after the connection's first event
  my.star:11:27: in on_ack
  my.star:6:14: in halve`, got)
}

func TestFailedRunIsInert(t *testing.T) {
	var failed []error
	run := compile(t, whole("def on_ack(state, ack):\n  return -1 if ack.mss == 9 else 5000")).Begin(
		starlark.Hooks{Failed: func(err error) { failed = append(failed, err) }})
	cfg := congestion.Config{MSS: 1000, InitialWindow: 3000}
	a, b := run.New(cfg), run.New(cfg)
	ack{Now: 1, MSS: 1000}.deliver(a)
	require.Equal(t, 5000, a.Cwnd())
	ack{Now: 2, MSS: 9}.deliver(a)
	require.Len(t, failed, 1)
	assert.Equal(t, 5000, a.Cwnd())
	ack{Now: 3, MSS: 1000}.deliver(b)
	assert.Equal(t, 3000, b.Cwnd(), "the run's other connections get no more events")
	c := run.New(cfg)
	ack{Now: 3, MSS: 1000}.deliver(c)
	assert.Equal(t, 3000, c.Cwnd())
	ack{Now: 4, MSS: 9}.deliver(b)
	assert.Len(t, failed, 1, "only the first error is reported")
	assert.ErrorIs(t, run.Err(), failed[0])
}
