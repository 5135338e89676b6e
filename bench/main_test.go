//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/bench/end"
	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/netns"
	"github.com/tidepool-net/tidepool/bench/report"
)

// TestMain lets the test binary run as an end of a connection, like the program itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && inside(os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestSmoke makes the shortest possible run. It only checks that every measurement works.
func TestSmoke(t *testing.T) {
	var out bytes.Buffer
	s := &session{
		turns: lead.Turns{Rounds: 1, Log: io.Discard}, span: 200 * time.Millisecond, out: &out,
	}
	defer s.close()
	for _, c := range s.streams() {
		switch c.name {
		case "clean":
			c.peers = c.peers[:3] // only peers that need no namespace
		case "router":
		default:
			continue
		}
		require.NoError(t, s.compare(t.Context(), &c))
	}
	var cases []string
	for lines := json.NewDecoder(&out); lines.More(); {
		var r report.Row
		require.NoError(t, lines.Decode(&r))
		cases = append(cases, r.Case)
		assert.Positive(t, r.Ours, r.Case)
		assert.Positive(t, r.Their, r.Case)
		assert.InEpsilon(t, r.Ours/r.Their, r.Ratio, 0.01)
		assert.Equal(t, "MB/s", r.Unit)
		assert.Len(t, r.OursRuns, 1)
	}
	assert.Equal(t, []string{"clean", "plane", "raw", "router"}, cases)
}

func TestFailuresAreReported(t *testing.T) {
	c := streamCase{name: "loss2"}
	failed := &lead.Samples{Name: "kernel", Err: io.ErrUnexpectedEOF}
	_, err := compare(&c, &peer{}, &lead.Samples{Name: "tidepool", Runs: []lead.Sample{{Value: 1}}}, failed)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	nothing := &lead.Samples{Name: "kernel", Runs: []lead.Sample{{}}}
	_, err = compare(&c, &peer{}, &lead.Samples{Name: "tidepool", Runs: []lead.Sample{{Value: 1}}}, nothing)
	require.ErrorContains(t, err, "nothing arrived in the run of kernel")
}

// If the kernel's TCP cannot run, a lossy stream is compared with the computed bound, without a
// goal.
func TestBoundAsPeer(t *testing.T) {
	ours := &lead.Samples{Name: "tidepool", Runs: []lead.Sample{{
		Value: 200, Path: end.Path{MSS: 1348, RTT: 100 * time.Microsecond},
	}}}
	c := streamCase{name: "loss2", path: routerLoss(0.02)}
	row, err := newRow(&c, &peer{name: "kernel-cubic", goal: 5}, ours)
	require.NoError(t, err)
	require.NoError(t, againstBound(&row))
	assert.Equal(t, "bound", row.Peer)
	assert.InDelta(t, 124.9, row.Their, 0.1)
	assert.InEpsilon(t, 200/row.Their, row.Ratio, 0.001)
	assert.Empty(t, row.Verdict(), "no goal")
	assert.Contains(t, row.Note, "kernel-cubic")

	row.Bound = 0
	require.ErrorContains(t, againstBound(&row), "round trip")
	_, err = newRow(&c, &peer{}, &lead.Samples{Name: "tidepool", Runs: []lead.Sample{{}}})
	require.ErrorContains(t, err, "nothing arrived in the run of tidepool")
}

// The kernel's TCP runs in separate namespaces. They drop the given share of packets and are
// deleted afterwards.
func TestKernelAsPeer(t *testing.T) {
	if lacking := netns.Lacking(); lacking != "" {
		t.Skip("skip: needs " + lacking)
	}
	s := &session{turns: lead.Turns{Rounds: 1, Log: io.Discard}, span: 100 * time.Millisecond}
	row, err := s.kernelRow(t.Context(), false)
	require.NoError(t, err)
	for _, loss := range []float64{0, 0.05} {
		k := &lead.Kernel{Row: row, Stream: s.stream("kernel", "reno", lossOf(direct, loss))}
		got, err := k.Run(t.Context())
		for range 5 { // a lost SYN is retransmitted only after the end of the run
			if err != nil || got.Value > 0 {
				break
			}
			got, err = k.Run(t.Context())
		}
		require.NoError(t, err)
		assert.Positive(t, got.Value)
		assert.Equal(t, 1348, got.Path.MSS)
		if loss > 0 {
			assert.Positive(t, got.Path.Retransmits)
		}
	}
	s.close()
	list, err := exec.CommandContext(t.Context(), "ip", "netns", "list").Output()
	require.NoError(t, err)
	assert.NotContains(t, string(list), row.Into(netns.Server)[3])
}

// TestCosts measures requests, connections and idle connections of tidepool and gVisor.
func TestCosts(t *testing.T) {
	s := &session{turns: lead.Turns{Rounds: 1, Log: io.Discard}, span: 20 * time.Millisecond}
	for _, c := range costs() {
		c.count = min(c.count, 100)
		row, err := s.measureCost(t.Context(), &c)
		require.NoError(t, err)
		assert.Positive(t, row.Ours, c.name)
		assert.Positive(t, row.Their, c.name)
		assert.True(t, row.LessIsBetter)
	}
}

func TestPoints(t *testing.T) {
	none := 0.0
	r := &report.Report{
		Rows: []report.Row{
			{
				Case: "clean", Peer: "gvisor-tuned", Ratio: 3, Goal: 2, Ends: report.Ends{SendNs: 0.5, ReceiveNs: 0.7},
				Retransmits: &none, Drops: &none,
			},
			{Case: "loss10", Peer: "kernel-cubic", Ours: 5, Their: 1},
			{Case: "kernel", Peer: "kernel-no-offloads", Ratio: 2, Goal: 3, Note: "a word"},
			{Case: "loss10-bbr", Peer: "kernel-bbr", Ours: 8, Their: 10},
		},
		Facts: []report.Fact{{Name: allocated + ", a", Value: 1}},
	}
	got := map[string]string{}
	for _, c := range points(r) {
		got[c.What] = strings.TrimSpace(c.Verdict() + " " + c.Note)
	}
	for what, want := range map[string]string{
		"clean, to gVisor tuned":                            "reached",
		"CPU of the sender, ns per byte":                    "reached",
		"CPU of the receiver, ns per byte":                  "MISSED",
		"clean, to the kernel without offloads":             "MISSED a word",
		"clean: segments retransmitted, per run":            "reached",
		"10 % loss each way, the best to the kernel's best": "MISSED",
		allocated + ", a":                                   "MISSED",
		"2 % loss each way, bbr to the kernel's":            "not measured",
	} {
		assert.Equal(t, want, got[what], what)
	}
}

func TestRelease(t *testing.T) {
	for uname, want := range map[string]string{
		"Linux 6.18.44-arch1-1": "Linux 6.18.44", "Linux 6.18.44": "Linux 6.18.44",
	} {
		assert.Equal(t, want, release(uname))
	}
}
