package figure

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const header = "seconds,sid,state,cwnd,ssthresh,rtt_ms,rttvar_ms,rto_ms,minrtt_ms," +
	"in_flight,acked,sent,retrans,rtos,tlps,limited\n"

func TestReadSamples(t *testing.T) {
	got, err := ReadSamples(strings.NewReader(header +
		"0.250000,1,ESTABLISHED,13600,4294967295,0.3500,0.1000,1.0000,0.1200,6800,1360,8160,2,1,3,cwnd\n" +
		"0.300000,4,FIN_WAIT_1,1,2,3,4,5,6,7,8,9,10,11,12,app\n"))
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, Sample{
		Seconds: 0.25, SID: 1, Cwnd: 13600, Ssthresh: 4294967295, RTT: 350 * time.Microsecond,
		MinRTT: 120 * time.Microsecond, RTO: time.Millisecond, InFlight: 6800, Acked: 1360,
		Sent: 8160, Retransmits: 2, Timeouts: 1, TailProbes: 3,
	}, got[0])
}

func TestReadSamplesWithColumnsInAnyOrder(t *testing.T) {
	got, err := ReadSamples(strings.NewReader("sent,new,acked,in_flight,minrtt_ms,rto_ms,rtt_ms," +
		"ssthresh,cwnd,sid,seconds,retrans,rtos,tlps\r\n9,what,8,7,1,2,3,4,5,6,0.5,1,2,3\r\n"))
	require.NoError(t, err)
	require.Len(t, got, 1)
	assert.InDelta(t, 9, got[0].Sent, 0)
	assert.Equal(t, 6, got[0].SID)
	assert.Equal(t, 3, got[0].TailProbes)
}

func TestReadSamplesSkipsAnIncompleteLastRow(t *testing.T) {
	row := "0.25,1,ESTABLISHED,1,2,3,4,5,6,7,8,9,10,11,12,cwnd\n"
	for _, tail := range []string{"", "0.26", "0.26,1,ESTABLISHED,1,2,3,4,5,6,7,8,9,10,11,", "x,1"} {
		got, err := ReadSamples(strings.NewReader(header + row + tail))
		require.NoError(t, err, "%q", tail)
		if strings.Count(tail, ",") < 15 {
			assert.Len(t, got, 1, "%q", tail)
		}
	}
}

func TestReadSamplesRejectsInvalidFiles(t *testing.T) {
	row := "0.25,1,ESTABLISHED,1,2,3,4,5,6,7,8,9,10,11,12,cwnd\n"
	for _, c := range []struct{ text, want string }{
		{"", "no samples"},
		{"time,cwnd\n1,2\n", "line 1: only 1 of 13 required columns"},
		{header + "nonsense\n" + row, "line 2: must have 16 fields"},
		{
			header + row + strings.Replace(row, "ESTABLISHED,1,", "ESTABLISHED,NaN,", 1) + row,
			"line 3: field 4: value out of range",
		},
		{header + row + row[:len(row)-1] + ",more\n" + row, "line 3: must have 16 fields"},
		{header + strings.Repeat("x", 1<<17), "token too long"},
	} {
		_, err := ReadSamples(strings.NewReader(c.text))
		assert.ErrorContains(t, err, c.want)
	}
}

func TestMeanRTT(t *testing.T) {
	ms := time.Millisecond
	samples := []Sample{
		{Seconds: 1},                // before the first measurement, so it does not count
		{Seconds: 5, RTT: 10 * ms},  // valid for 1 s: 100 round trips
		{Seconds: 6, RTT: 2 * ms},   // valid for 3 s: 1500 round trips
		{Seconds: 9, RTT: 250 * ms}, // valid for 2 s: 8 round trips
		{Seconds: 11, RTT: 50 * ms}, // the last sample counts for no time
	}
	assert.InDelta(t, 6.0/1608, MeanRTT(samples).Seconds(), 1e-8)
	assert.Equal(t, 50*ms, MeanRTT(samples[4:]))
	assert.Zero(t, MeanRTT(samples[:1]))
	assert.Zero(t, MeanRTT(nil))
}

func FuzzReadSamples(f *testing.F) {
	f.Add(header + "0.25,1,ESTABLISHED,1,2,3,4,5,6,7,8,9,10,11,12,cwnd\n")
	f.Add(header + "0.25,1,")
	f.Add("seconds\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		samples, err := ReadSamples(strings.NewReader(text))
		if err == nil && len(samples) > strings.Count(text, "\n") {
			t.Errorf("%d samples of %d lines", len(samples), strings.Count(text, "\n"))
		}
		if MeanRTT(samples) < 0 {
			t.Error("negative round-trip time")
		}
	})
}
