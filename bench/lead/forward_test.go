//go:build linux

package lead

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ip"
)

func TestParseBenchmarks(t *testing.T) {
	got := parseBenchmarks([]byte(`goos: linux
cpu: something
BenchmarkWakeup/doorbell/best-2        	     200	         2.186 p50-µs	         4.409 p99-µs
BenchmarkTimerError/best/50µs          	     200	        35.92 p50-µs	        50.97 p99-µs
BenchmarkTimerError/best/200µs-2       	 broken
PASS
`))
	assert.Equal(t, []Benchmark{
		{"Wakeup/doorbell/best", map[string]float64{"p50-µs": 2.186, "p99-µs": 4.409}},
		{"TimerError/best/50µs", map[string]float64{"p50-µs": 35.92, "p99-µs": 50.97}},
	}, got)
}

func TestFoundingExperiments(t *testing.T) {
	assert.Equal(t, []string{"fence", "fence-16", "hol-20"}, founding(`What a control does
  cubic-reno-buffer  CUBIC and Reno alone, as founding document 002 does not

The sliding fence (founding document 000)
  fence        the sliding fence against the sliding window
  fence-16     the document's table

The schedules of RFC 8867
  rmcat-5.1  capacity in steps

Reliable data transfer (founding document 003)
  hol-20        20 objects
`))
}

func TestMedian(t *testing.T) {
	s := Samples{Runs: []Sample{{Value: 300}, {Value: 100}, {Value: 190}}}
	assert.InDelta(t, 190, s.Value(), 0)
	s.Runs = append(s.Runs, Sample{Value: 240})
	assert.InDelta(t, 215, s.Value(), 0, "mean of the two middle values")
	assert.Zero(t, new(Samples).Value())
}

// A failed transfer is an error and yields no figure.
func TestMissingProgram(t *testing.T) {
	p := Program{Path: t.TempDir(), Dir: t.TempDir()}
	_, err := p.Demo(t.Context())
	require.Error(t, err)
	_, err = p.Forward(t.Context(), time.Second)
	require.Error(t, err)
	_, err = p.Hold(t.Context(), 1)
	require.Error(t, err)
	_, err = p.Founding(t.Context())
	require.Error(t, err)
}

func TestPacketsAreValid(t *testing.T) {
	for _, train := range packets() {
		assert.Len(t, train.Pieces, train.Count)
		assert.Equal(t, train.Bytes, train.Count*train.Size)
		h, payload, drop := ip.ParseHeader(train.Pieces[0])
		assert.Equal(t, ip.DropNone, drop)
		assert.Equal(t, clientAddr, h.Dst)
		assert.Len(t, payload, packetBytes-ip.HeaderLen)
	}
}

// TestDrive connects the two hosts directly, without a router.
func TestDrive(t *testing.T) {
	ports, err := loopback(2)
	require.NoError(t, err)
	left, err := openHost(ports[0], ports[1], serverAddr, routerNear)
	require.NoError(t, err)
	defer left.Close()
	right, err := openHost(ports[1], ports[0], clientAddr, routerFar)
	require.NoError(t, err)
	defer right.Close()
	f, err := drive(t.Context(), left, right, 50*time.Millisecond)
	require.NoError(t, err)
	assert.Positive(t, f.arrived)
	assert.LessOrEqual(t, f.arrived, f.sent)
	assert.LessOrEqual(t, f.took, 50*time.Millisecond, "the span for sending")
	assert.Greater(t, f.took, 10*time.Millisecond)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = drive(ctx, left, right, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
}
