package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/link"

	"github.com/tidepool-net/tidepool/internal/ip"
)

func threeRuns() []result {
	var all []result
	for i, v := range []float64{300, 100, 190} {
		all = gather(all, "clean", sample{
			value: v, unit: "MB/s", floor: 200, note: []string{"fast", "slow", "usual"}[i],
		})
		all = gather(all, "waiting", sample{what: "doorbell", value: v / 100, unit: "µs"})
	}
	return all
}

func TestRunsAreGatheredByName(t *testing.T) {
	all := threeRuns()
	require.Len(t, all, 2)
	assert.Equal(t, "clean", all[0].name)
	assert.Equal(t, []float64{300, 100, 190}, all[0].values)
	assert.InDelta(t, 190, all[0].median(), 0)
	assert.Equal(t, "usual", all[0].middle(), "the note of the run in the middle")
	assert.Equal(t, "MISSED", all[0].verdict())
	assert.Equal(t, "waiting, doorbell", all[1].name)
	assert.Empty(t, all[1].verdict(), "nothing was promised")

	all = gather(all, "clean", sample{value: 240, floor: 200})
	assert.InDelta(t, 215, all[0].median(), 0, "between the two in the middle")
	assert.Equal(t, "reached", all[0].verdict())
}

func TestTheTable(t *testing.T) {
	assert.Equal(t, ""+
		"                    reached  floor\n"+
		"clean              190 MB/s  ≥ 200  MISSED  (100 to 300)  usual\n"+
		"waiting, doorbell    1.9 µs                 (1 to 3)\n", table(threeRuns()))
	one := gather(nil, "router", sample{value: 634_550.4, unit: "packets/s", floor: 300_000})
	assert.Equal(t, ""+
		"                  reached      floor\n"+
		"router  634,550 packets/s  ≥ 300,000  reached\n", table(one), "no column for nothing")
}

func TestTheTableAsJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, (&bench{json: true, out: &b}).print(threeRuns()))
	lines := bytes.Split(bytes.TrimSpace(b.Bytes()), []byte("\n"))
	require.Len(t, lines, 2)
	assert.JSONEq(t, `{"name":"clean","value":190,"unit":"MB/s","floor":200,"reached":false,
		"runs":[300,100,190],"note":"usual"}`, string(lines[0]))
	var d document
	require.NoError(t, json.Unmarshal(lines[1], &d))
	assert.Nil(t, d.Reached, "nothing was promised")
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.123456: "0.123", 5: "5", 99.94: "99.9", 101.4: "101", 9999: "9999",
		10_000: "10,000", 1_234_567: "1,234,567",
	} {
		assert.Equal(t, want, figure(v))
	}
}

func TestParseWaiting(t *testing.T) {
	got := parseWaiting([]byte(`goos: linux
cpu: something
BenchmarkWakeup/doorbell/fed-2         	     200	         1.123 p50-µs	        18.50 p99-µs
BenchmarkWakeup/doorbell/best-2        	     200	         2.186 p50-µs	         4.409 p99-µs
BenchmarkWakeup/datagram/best-16       	     200	        17 p50-µs	       4000 p99-µs
BenchmarkTimerError/best/50µs          	     200	        35.92 p50-µs	        50.97 p99-µs
BenchmarkTimerError/best/200µs-2       	 broken
PASS
`))
	assert.Equal(t, []sample{
		{what: "wake-up by doorbell", value: 2.186, unit: "µs", note: "99th percentile 4.409 µs"},
		{what: "wake-up by datagram", value: 17, unit: "µs", note: "99th percentile 4000 µs"},
		{what: "lateness of 50µs", value: 35.92, unit: "µs", note: "99th percentile 50.97 µs"},
	}, got)
}

func TestNothingToMeasureIsAnError(t *testing.T) {
	b := bench{only: "no such thing", program: "node", dir: t.TempDir()}
	require.ErrorContains(t, b.run(t.Context()), `no measurement has "no such thing" in its name`)
}

func TestEveryMeasurementHasRuns(t *testing.T) {
	b := bench{quick: true}
	for _, m := range b.measurements() {
		assert.Positive(t, m.runs, m.name)
	}
	assert.Equal(t, int64(1), b.size(2, 1))
	b.quick = false
	assert.Equal(t, int64(2), b.size(2, 1))
}

func TestATransferThatFailedIsNoFigure(t *testing.T) {
	b := bench{program: t.TempDir(), dir: t.TempDir(), status: io.Discard} // a folder is no program
	for _, m := range b.measurements() {
		if m.name == "waiting" {
			continue // it does not run the program
		}
		_, err := b.measure(t.Context(), measurement{name: m.name, runs: 1, once: m.once})
		assert.Error(t, err, m.name)
	}
}

func TestPacketsAreValid(t *testing.T) {
	for _, train := range packets() {
		assert.Len(t, train.Pieces, train.Count)
		assert.Equal(t, train.Bytes, train.Count*train.Size)
		h, payload, drop := ip.ParseHeader(train.Pieces[0])
		assert.Equal(t, ip.DropNone, drop)
		assert.Equal(t, rightAddr, h.Dst)
		assert.Len(t, payload, packetBytes-ip.HeaderLen)
	}
}

// TestDrive has the two hosts on one link, without a router between them.
func TestDrive(t *testing.T) {
	ports, err := link.FreePorts(2)
	require.NoError(t, err)
	left, err := openHost(ports[0], ports[1], leftAddr, routerLeft)
	require.NoError(t, err)
	defer left.Close()
	right, err := openHost(ports[1], ports[0], rightAddr, routerRight)
	require.NoError(t, err)
	defer right.Close()
	f, err := drive(t.Context(), left, right, 50*time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, f.arrived)
	assert.LessOrEqual(t, f.arrived, f.sent)
	assert.LessOrEqual(t, f.took, 50*time.Millisecond, "the time in which packets were sent")
	assert.Greater(t, f.took, 10*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = drive(ctx, left, right, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
}
