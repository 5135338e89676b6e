//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/bench/lead"
	"github.com/tidepool-net/tidepool/bench/report"
)

// TestMain has the test's program be an end, as the program itself is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && inside(os.Args[1]) {
		main()
		return
	}
	os.Exit(m.Run())
}

// The smallest run there is: it says nothing about speed, but that everything can be measured.
func TestSmoke(t *testing.T) {
	var out bytes.Buffer
	s := &session{
		turns: lead.Turns{Rounds: 1, Talk: io.Discard}, span: 50 * time.Millisecond, out: &out,
	}
	defer s.close()
	for _, c := range s.streams() {
		switch c.name {
		case "clean":
			c.peers = c.peers[:3] // who needs no namespace
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

func TestWhatFailsIsALine(t *testing.T) {
	c := streamCase{name: "loss2"}
	failed := &lead.Samples{Name: "kernel", Err: io.ErrUnexpectedEOF}
	_, err := compare(&c, &peer{}, &lead.Samples{Name: "tidepool", Runs: []lead.Sample{{Value: 1}}}, failed)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	nothing := &lead.Samples{Name: "kernel", Runs: []lead.Sample{{}}}
	_, err = compare(&c, &peer{}, &lead.Samples{Name: "tidepool", Runs: []lead.Sample{{Value: 1}}}, nothing)
	require.ErrorContains(t, err, "something arrives: kernel")
}
