package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/bench/flame"
)

func sample() *Report {
	one, none := 1.0, 0.0
	shares := []flame.Share{{Name: "tcp", Share: 1}}
	return &Report{
		Commit: "c0ffee", CPU: "some", CPUs: 2, Rounds: 2,
		Rows: []Row{
			{
				Case: "clean", Ours: 200, Peer: "gvisor", Their: 100, Ratio: 2,
				Unit: "MB/s", Goal: 2, OursRuns: []float64{190, 210}, TheirRuns: []float64{100, 100},
				Measured: Measured{"clean", []float64{0.5, 0.4}, []float64{0.3, 0.2}}, RTOs: &none,
			},
			{
				Case: "plane", Measured: Measured{Case: "clean"}, Ours: 200, Peer: "plane", Their: 500, Ratio: 0.4,
				Unit: "MB/s", Goal: 0.6, OursRuns: []float64{190, 210}, TheirRuns: []float64{500},
			},
			{
				Case: "idle", Measured: Measured{Case: "idle"}, Ours: 10, Peer: "gvisor", Their: 40, Ratio: 0.25,
				Unit: "B of heap", Goal: 0.5, LessIsBetter: true, Bound: 7, RTTms: 1, RTOs: &one,
			},
		},
		Facts:    []Fact{{Name: "a file, two nodes", Value: 12345, Unit: "MB/s", Runs: []float64{12345}}},
		Skipped:  []Skipped{{Case: "loss2", Peer: "kernel", Skip: "needs root | more"}},
		Checks:   []Check{{Point: 1, What: "it", Got: 1, Goal: 2, Known: true}, {Point: 2, What: "not"}},
		Profiles: []Profiled{{Name: "send", File: "f.svg", Packages: shares}},
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		Check
		want, demand string
	}{
		{Check{Got: 2, Goal: 2, Known: true}, "reached", "≥ 2"},
		{Check{Got: 1.9, Goal: 2, Known: true}, "MISSED", "≥ 2"},
		{Check{Got: 2, Goal: 2, AtMost: true, Known: true}, "reached", "≤ 2"},
		{Check{Got: 2.1, Goal: 2, AtMost: true, Known: true}, "MISSED", "≤ 2"},
		{Check{Goal: 1e6}, "not measured", "≥ 1,000,000"},
	} {
		assert.Equal(t, c.want, c.Verdict())
		assert.Equal(t, c.demand, c.Demand())
	}
}

// A missed goal is marked if even the data plane without a protocol would have missed it.
func TestGoalsAboveTheCeiling(t *testing.T) {
	rows := []Row{
		{Peer: "plane", Ours: 2500, Their: 3000, Ratio: 0.83, Goal: 0.6},
		{Peer: "kernel", Ours: 2500, Their: 1400, Ratio: 1.79, Goal: 3},
		{Peer: "low", Ours: 2500, Their: 900, Ratio: 2.78, Goal: 3},
		{Peer: "reached", Ours: 2500, Their: 1400, Ratio: 1.79, Goal: 1},
		{Peer: "free", Ours: 2500, Their: 9000, Ratio: 0.28},
	}
	Weigh(rows)
	for i := range rows {
		if rows[i].Peer != "kernel" {
			assert.Empty(t, rows[i].Note, rows[i].Peer)
		}
	}
	assert.Equal(t, "goal above the plane's ceiling of this run: 3 × 1400 > 3000", rows[1].Aside())
	assert.Equal(t, "MISSED", rows[1].Verdict())
	rows[1].Note = ""
	Weigh(rows[1:])
	assert.Empty(t, rows[1].Note, "the plane was not measured")
}

func TestTable(t *testing.T) {
	assert.Equal(t, ""+
		"case   ours  theirs        ratio  goal            peer\n"+
		"clean   200      100 MB/s      2  ≥ 2    reached  gvisor\n"+
		"plane   200      500 MB/s    0.4  ≥ 0.6  MISSED   plane\n"+
		"idle     10  40 B of heap   0.25  ≤ 0.5  reached  gvisor  bound 7 at 1 ms, 1 RTOs\n"+
		"loss2                                    skipped  kernel  needs root | more\n"+
		"\n"+
		"figure             value   unit\n"+
		"a file, two nodes  12,345  MB/s\n"+
		"\n"+
		"goal    measured  required\n"+
		"1  it          1  ≥ 2       MISSED\n"+
		"2  not  ?                   not measured\n", sample().Table())
}

func TestBenchmarks(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteBenchmarks(&b))
	for _, line := range []string{
		"BenchmarkPeers/case=clean/stack=tidepool-2 1 190 MB/s 0.5 send-ns/B 0.3 receive-ns/B\n",
		"BenchmarkPeers/case=clean/stack=plane-2 1 500 MB/s\n",
		"BenchmarkFigures/a_file_two_nodes-2 1 12345 MB/s\n",
	} {
		assert.Equal(t, 1, bytes.Count(b.Bytes(), []byte(line)), line)
	}
}

func TestPage(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WritePage(&b))
	assert.Contains(t, b.String(), "| 1 | it | 1 | ≥ 2 | MISSED |  |")
	assert.Contains(t, b.String(), "| plane | 200 | 500 | MB/s | 0.4 | ≥ 0.6 | MISSED | plane |")
	assert.Contains(t, b.String(), `needs root \| more`)
	assert.Contains(t, b.String(), "| tcp | 100.0 % |")
}

func TestFigureIsXML(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sample().WriteFigure(&b))
	assert.Contains(t, b.String(), "1/idle: gvisor")
	for d := xml.NewDecoder(&b); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
	}
}

func TestLine(t *testing.T) {
	var b bytes.Buffer
	r := sample().Rows[0]
	r.OursRuns, r.TheirRuns, r.RTOs = nil, nil, nil
	require.NoError(t, Line(&b, r))
	assert.JSONEq(t, `{"case":"clean","ours":200,"peer":"gvisor","theirs":100,"ratio":2,
		"unit":"MB/s","goal":2}`, b.String())
	assert.True(t, json.Valid(b.Bytes()))
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.123456: "0.123", 5: "5", 99.94: "99.9", 101.4: "101", 9999: "9999",
		10_000: "10,000", 1_234_567: "1,234,567",
	} {
		assert.Equal(t, want, Figure(v))
	}
	assert.InDelta(t, 1235, Round(1234.56), 0)
	assert.Zero(t, Round(0))
}

// TestPageIsWritten rejects edits of docs/performance.md that are not in page.md: the next run would remove
// them.
func TestPageIsWritten(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/performance/results.json")
	require.NoError(t, err)
	var r Report
	require.NoError(t, json.Unmarshal(b, &r))
	want, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	var got strings.Builder
	require.NoError(t, r.WritePage(&got))
	require.Equal(t, string(want), got.String(), "edit bench/report/page.md too")
}
