package plan_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/lab/plan"
)

var update = flag.Bool("update", false, "write the golden files")

// These are correct parts, for files in which another part is wrong.
const (
	head    = "name: x\n"
	onePath = "path: {down: {delay: 10ms, rate: 1Mbit/s}}\n"
	oneFlow = "flows: [{cc: reno}]\n"
	whole   = head + onePath + oneFlow
)

// down returns a file whose direction down contains this text.
func down(text string) string {
	return head + "path: {down: {" + text + "}}\nflows: [{cc: reno, size: 1MB}]\n"
}

// flow returns a file with one flow that has these keys.
func flow(text string) string { return head + onePath + "flows: [{" + text + "}]\n" }

// expects returns a file with a sweep and these expectations.
func expects(text string) string {
	return whole + "sweep: {flows.0.cc: [reno, cubic], path.down.loss: [1%, 2%]}\nexpect:\n  - " +
		text + "\n"
}

// bad contains files with errors. testdata/bad.golden has the error messages.
var bad = []struct{ name, text string }{
	{"nothing", ""},
	{"only a comment", "# nothing\n"},
	{"not a mapping", "- 1\n"},
	{"a scalar", "hello\n"},
	{"invalid YAML", "name: [x\n"},
	{"a tab", "name: x\n\tpath: y\n"},
	{"an open quote", "name: 'x\n"},
	{"two documents", whole + "---\n" + whole},
	{"an anchor", "name: &a x\nabout: *a\n"},
	{"a merge key", "<<: {name: x}\n"},
	{"a tag", "name: !!str x\n"},
	{"a complex key", "? [a]\n: b\n"},
	{"a directive", "%YAML 1.2\n---\nname: x\n"},
	{"deep", "name: " + strings.Repeat("[", 50) + strings.Repeat("]", 50) + "\n"},
	{"deep entries", "name:\n" + strings.Repeat("- ", 50) + "x\n"},
	{"a key twice", "name: x\nseed: 1\nseed: 2\n" + onePath + oneFlow},
	{"an unknown key", "neme: x\n" + onePath + oneFlow},
	{"a far unknown key", whole + "frobnicate: 1\n"},
	{"no name", onePath + oneFlow},
	{"no path", head + oneFlow},
	{"no flows", head + onePath},
	{"empty flows", head + onePath + "flows: []\n"},
	{"flows are a mapping", head + onePath + "flows: {cc: reno}\n"},
	{"a key without a value", head + "about:\n" + onePath + oneFlow},
	{"another key without a value", whole + "host_jitter:\n"},
	{"keys without values", head + "warmup:\npath:\nflows:\nexpect:\nsweep:\n"},
	{
		"flows without values",
		head + onePath + "flows:\n  - cc:\n    window:\n    size:\n    app:\n    start:\n",
	},
	{"a direction without values", head + oneFlow +
		"path:\n  down:\n    delay:\n    rate:\n    queue:\n    loss:\n    jitter:\n  up:\n"},
	{"parts without values", head + oneFlow + "path:\n  down:\n    rate: {steps: ~}\n" +
		"    queue: {type: red, limit: ~, min: ~, max: ~}\n" +
		"    loss: {gilbert: {mean: ~, burst: ~}}\n    jitter: {table: ~}\n"},
	{"a bad name", "name: a/b\n" + onePath + oneFlow},
	{"no unit", head + "duration: 240\n" + onePath + oneFlow},
	{"another unit", head + "duration: 240B\n" + onePath + oneFlow},
	{"an unknown unit", head + "duration: 240parsec\n" + onePath + oneFlow},
	{"a near unit", head + "duration: 240S\n" + onePath + oneFlow},
	{"no number", head + "duration: long\n" + onePath + oneFlow},
	{"negative", head + "duration: -3s\n" + onePath + oneFlow},
	{"out of range", head + "duration: 9000h\n" + onePath + oneFlow},
	{"a list for a time", head + "duration: [1s]\n" + onePath + oneFlow},
	{"seed", head + "seed: one\n" + onePath + oneFlow},
	{"trials", head + "trials: 0\n" + onePath + oneFlow},
	{"mtu", head + "mtu: 20\n" + onePath + oneFlow},
	{"warmup", head + "duration: 10s\nwarmup: 10s\n" + onePath + oneFlow},
	{"host jitter", head + "host_jitter: 1bdp\n" + onePath + oneFlow},
	{"a path without down", head + "path: {up: {delay: 1ms}}\n" + oneFlow},
	{"a direction with a near key", down("dealy: 1ms")},
	{"several errors", down("delay: 5, rate: 12Mbps, loss: 120%, queue: {typ: droptail}")},
	{"ambiguous rate", down("rate: 12Mb")},
	{"rate of zero", down("rate: 0Mbit/s")},
	{"queue without a rate", down("delay: 1ms, queue: 20pkt")},
	{"queue of another kind", down("rate: 1Mbit, queue: {type: codle}")},
	{"queue with another's key", down("rate: 1Mbit, queue: {type: droptail, target: 5ms}")},
	{"queue too small", down("rate: 1Mbit, queue: 1000B")},
	{"queue without a unit", down("rate: 1Mbit, queue: 100")},
	{"half a packet", down("rate: 1Mbit, queue: 1.5pkt")},
	{"bdp without a delay", down("rate: 1Mbit, queue: 1bdp")},
	{"codel", down("rate: 1Mbit, queue: {type: codel, target: 200ms}")},
	{"red", down("rate: 1Mbit, queue: {type: red, min: 5pkt, max: 20kB}")},
	{"red with min above max", down("rate: 1Mbit, queue: {type: red, min: 20kB, max: 10kB}")},
	{"loss of an unknown word", down("loss: some")},
	{"loss without a unit", down("loss: 0.02")},
	{"loss every nothing", down("loss: every 0")},
	{"loss at nothing", "name: x\npath:\n  down:\n    loss: at [17, x]\n" + oneFlow},
	{"loss of no kind", down("loss: {gilbret: {mean: 2%}}")},
	{"loss of two kinds", down("loss: {every: 3, at: [1]}")},
	{"loss with another's key", down("loss: {every: 3, correlation: 1%}")},
	{"gilbert with an impossible mean", down("loss: {gilbert: {mean: 90%, burst: 2}}")},
	{"gilbert without a mean", down("loss: {gilbert: {burst: 2}}")},
	{"a window without an end", down("loss: {from: 1s, share: 100%}")},
	{"windows out of order", down("loss: {windows: [{from: 5s, to: 6s}, {from: 1s, to: 2s}]}")},
	{"netem's arguments in loss", down(`loss: {netem: "0.3% 200%"}`)},
	{"netem's arguments", head + "path:\n  down: delay 20ms lss 5%\n" + oneFlow},
	{
		"netem and the same",
		down(`netem: "delay 3ms rate 1mbit", loss: 1%, queue: 1bdp, delay: 5ms`),
	},
	{"jitter", down("jitter: {nromal: 3ms}")},
	{"jitter table", down("jitter: {table: x.dist}")},
	{"duplicate", down("duplicate: 101%")},
	{"corrupt", down("corrupt: {bits: 2}")},
	{"corrupt where", down("corrupt: {share: 1%, where: header}")},
	{"policer", down("policer: {rate: 1Mbit}")},
	{"policer with a small burst", down("policer: {rate: 1Mbit, burst: 100B}")},
	{"steps", down("rate: {steps: [[0s, 1Mbit], [0s, 2Mbit]]}")},
	{"late steps", down("rate: {steps: [[1s, 1Mbit]]}")},
	{"half a step", down("rate: {steps: [[1s]]}")},
	{"a trace of no kind", down("trace: {length: 5s}")},
	{"a trace out of order", down("trace: [5, 4]")},
	{"a trace of two kinds", down("trace: {const: 1Mbit/s, poisson: 1Mbit/s}")},
	{
		"a trace with a bad rate in every cell",
		down("trace: {poisson: 1Mbps}") + "sweep: {flows.0.cc: [reno, cubic]}\n",
	},
	{"a trace with nothing but a stall", down("trace: {const: 1Mbit/s, length: 5s, stall: 5s}")},
	{
		"a trace with a stall's rate without a stall",
		down("trace: {const: 1Mbit/s, stall_rate: 120kbit/s}"),
	},
	{"a trace in bytes", down("trace: {const: 1MB}")},
	{"a trace of unknown kind", down("trace: {poison: 1Mbit/s}")},
	{"a trace too long", down("trace: {const: 1Gbit/s, length: 10h}")},
	{"a trace without a packet", down("trace: {const: 1kbit/s, length: 1s}")},
	{"rate and trace", down("rate: 1Mbit, trace: x")},
	{"path and mm", whole + "mm: mm-delay 3\n"},
	{"mahimahi without arguments", head + "mm: mm-delay\n" + oneFlow},
	{"mahimahi with another shell", head + "mm: mm-delay 3 mm-lnk T T\n" + oneFlow},
	{"mahimahi with another direction", head + "mm: mm-loss sideways .1\n" + oneFlow},
	{"mahimahi with another option", head + "mm: mm-link T T --uplink-que=droptail\n" + oneFlow},
	{"mahimahi with a queue without a limit", head + "mm: mm-link T T --downlink-queue=droptail\n" +
		oneFlow},
	{"mahimahi with another argument", head +
		"mm: mm-link T T --downlink-queue=droptail --downlink-queue-args=octets=3\n" + oneFlow},
	{"cc", flow("cc: renoo")},
	{"recovery", flow("recovery: fack")},
	{"protocol", flow("protocol: sctp")},
	{"mss", flow("mss: 9000")},
	{"iw", flow("iw: 0")},
	{"stop before start", flow("start: 5s, stop: 3s")},
	{"start after the end", flow("start: 61s")},
	{"stop before the last copy", flow("count: 3, interval: 5s, stop: 10s")},
	{"an interval alone", flow("interval: 5s")},
	{"fixed without a window", flow("cc: fixed")},
	{"a window without fixed", flow("window: 10pkt")},
	{"timeouts", flow("rto_min: 2s, rto_max: 1s")},
	{"delayed", flow("delayed_ack: 2s")},
	{"a switch", flow("sack: maybe")},
	{"a file that is not a script", flow("cc: tahoe.py")},
	{"an app", flow("app: noise")},
	{"on without off", flow("app: {on: 1s}")},
	{"requests without a size", flow("app: {requests: 5}")},
	{"cc of another protocol", flow("protocol: rcp, cc: reno")},
	{"size with an echo", flow("protocol: rcp, size: 10MB")},
	{"writes with min above max", flow("echo: {min_bytes: 9, max_bytes: 3}")},
	{"pauses with min above max", flow("echo: {min_pause: 9s, max_pause: 3s}")},
	{"echo and size", flow("echo: {writes: 10}, size: 10MB")},
	{"echo and objects", flow("echo: {writes: 10}, objects: {pairs: 1}")},
	{"echo and burst", flow("protocol: rcp, echo: {writes: 10}, burst: 16")},
	{"a wide fence", flow("protocol: rcp, rcp: {width: 1000000}")},
	{"a short timeout", flow("protocol: rcp, rcp: {tick: 10ms, timeout: 5ms}")},
	{"objects in an unknown order", flow("objects: {order: random}")},
	{"an order with rdt", flow("protocol: rdt, objects: {order: parallel}")},
	{"a checksum", flow("protocol: rdt, rdt: {checksum: sha}")},
	{"a notebook's fixed window", flow("protocol: notebook, notebook: {strategy: fixed}")},
	{"a notebook's tahoe", flow("protocol: notebook, notebook: {window: 1000}")},
	{
		"a notebook's fixed window with cwnd",
		flow("protocol: notebook, notebook: {strategy: fixed, window: 3, cwnd: 1}"),
	},
	{"no delay and no rate", head + "path: {down: {loss: 1%}}\nflows: [{size: 1MB}, {name: a}]\n"},
	{
		"no delay and no rate in one cell",
		whole + "sweep: {path: [{down: {delay: 1ms}}, {down: {delay: 0}}]}\n",
	},
	{"the same name", head + onePath + "flows: [{name: a}, {name: a}]\n"},
	{"a number for a name", flow("name: 3")},
	{"too many flows", flow("count: 1001")},
	{"too many flows in total", head + onePath + "flows: [{count: 600}, {count: 600}]\n"},
	{"sweep of no values", whole + "sweep: {flows.0.cc: []}\n"},
	{"sweep of a word", whole + "sweep: {flows.0.cc: reno}\n"},
	{"sweep of a list", whole + "sweep: [flows.0.cc]\n"},
	{"sweep of an unknown key", whole + "sweep: {flws.0.cc: [reno]}\n"},
	{"sweep of an unknown key within", whole + "sweep: {flows.0.cx: [reno]}\n"},
	{"sweep of a missing flow", whole + "sweep: {flows.1.cc: [reno]}\n"},
	{"sweep of a flow by another name", whole + "sweep: {flows.a.cc: [reno]}\n"},
	{"sweep with a wrong value", whole + "sweep: {flows.0.cc: [reno, cubik]}\n"},
	{"sweep of one value twice", whole + "sweep: {flows.0.cc: [reno, reno]}\n"},
	{"sweep of the name", whole + "sweep: {name: [a, b]}\n"},
	{"sweep into a scalar", whole + "sweep: {path.down.rate.steps: [3]}\n"},
	{"sweep without a key", whole + "sweep: {p: {values: [1%]}}\n"},
	{"sweep of cases that are not mappings", whole + "sweep: {arm: {a: reno}}\n"},
	{"a value that is valid in one cell only", head +
		"path: {down: {delay: 10ms, rate: 1Mbit/s, queue: 1bdp}}\n" +
		oneFlow + "sweep: {path.down.delay: [10ms, 0ms], path.up: [same]}\n"},
	{"too many cells", whole + "sweep: {seed: [" + series(200) + "], path.down.delay: [" +
		delays(200) + "]}\n"},
	{"expect is a mapping", whole + "expect: {goodput: 1}\n"},
	{"expect of an unknown metric", expects("goodptu > 1Mbit/s")},
	{"expect of a missing cell", expects("goodput(tahoe) > 1Mbit/s")},
	{"expect of a missing flow", expects("goodput[1] > 1Mbit/s")},
	{"expect without a comparison", expects("goodput")},
	{"expect in another unit", expects("rtt.max < 3Mbit/s")},
	{"expect with an unknown key", expects("{value: goodput, is: 3Mbit/s, wthin: 1%, source: s}")},
	{"expect without a value", expects("{is: 3Mbit/s}")},
	{"expect two values", expects("{value: goodput, is: 3Mbit/s, at_least: 1Mbit/s}")},
	{
		"expect with a tolerance in another unit",
		expects("{value: goodput, is: 3Mbit/s, within: 5ms}"),
	},
	{"expect at most within", expects("{value: goodput, at_most: 3Mbit/s, within: 5%}")},
	{
		"expect where no cell is",
		expects("{where: {cc: bbr}, value: goodput, is: 3Mbit/s, source: s}"),
	},
	{
		"expect where a key is not swept",
		expects("{where: {mtu: 9000}, value: goodput, is: 3Mbit/s, source: s}"),
	},
	{"metrics of an unknown name", whole + "metrics: [goodput, client_snet]\n"},
	{"metrics twice", whole + "metrics: [goodput, goodput]\n"},
	{"no metrics", whole + "metrics: []\n"},
	{"metrics as a mapping", whole + "metrics: {goodput: 1}\n"},
	{"not UTF-8", "name: x\nabout: \xff\n"},
	{"an escape sequence", "name: x\x1b[31m\n" + onePath + oneFlow},
}

func series(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(i)
	}
	return strings.Join(words, ", ")
}

func delays(n int) string { return strings.ReplaceAll(series(n), ",", "ms,") + "ms" }

// The errors of each wrong file have a line, a column and a caret.
func TestBadFiles(t *testing.T) {
	var messages []string
	for _, tt := range bad {
		f, err := plan.Parse("x.yaml", []byte(tt.text))
		if err == nil {
			_, err = f.Cells()
		}
		require.Error(t, err, tt.name)
		var errs plan.Errors
		require.ErrorAs(t, err, &errs, tt.name)
		messages = append(messages, fmt.Sprintf("%s\n%s\n", tt.name, err))
	}
	const between = "== "
	name := filepath.Join("testdata", "bad.golden")
	if *update {
		text := between + strings.Join(messages, between)
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	want := strings.Split(string(text), between)[1:]
	require.Len(t, want, len(messages))
	for i := range messages {
		assert.Equal(t, want[i], messages[i])
	}
}

// A long list of errors is cut off, and its last line says so.
func TestManyErrors(t *testing.T) {
	var b strings.Builder
	b.WriteString(whole)
	for i := range 200 {
		fmt.Fprintf(&b, "strange%d: 1\n", i)
	}
	_, err := plan.Parse("x.yaml", []byte(b.String()))
	var errs plan.Errors
	require.ErrorAs(t, err, &errs)
	assert.Len(t, errs, 51)
	assert.EqualError(t, errs[50], "x.yaml: more errors follow; these are the first 50")
}

// A file above the size limit is not read.
func TestLongFile(t *testing.T) {
	_, err := plan.Parse("x.yaml", []byte(whole+strings.Repeat("#", 1<<20)))
	assert.EqualError(t, err, "x.yaml: too long; expected at most 1 MiB")
	_, err = plan.Parse("x.yaml", []byte(whole+"about: ["+strings.Repeat("1,", 100_000)+"]\n"))
	assert.ErrorContains(t, err, "too many values; expected 100000 at most")
	_, err = plan.Parse("x.yaml", []byte(whole+"about: ["+strings.Repeat("1,", 250_000)+"]\n"))
	assert.ErrorContains(t, err, "too many values; expected 100000 at most")
	_, err = plan.Parse("x.yaml", []byte(whole+strings.Repeat("a: 1\n", 100_000)))
	assert.ErrorContains(t, err, "x.yaml:2001:1: too many keys; expected 2000 at most")
}

func TestTooManyFlows(t *testing.T) {
	f := parse(t, whole+"sweep: {flows.0.count: [1000, 500], seed: ["+series(300)+"]}\n")
	_, err := f.Cells()
	assert.ErrorContains(t, err, "x.yaml:1:1: too many flows in total: cells times flows; expected 200000 at most")
}

func TestTooManyRuns(t *testing.T) {
	f := parse(t, whole+"trials: 500000\nsweep: {seed: [1, 2, 3]}\n")
	_, err := f.Cells()
	assert.EqualError(t, err,
		`x.yaml:1:1: too many runs: cells times trials; expected 1000000 at most
    name: x
    ^^^^`)
}
