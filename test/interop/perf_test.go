//go:build linux

package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// perfSeconds is the length of each measurement.
const perfSeconds = "1"

// perfCases are measurements, each as options of iperf3 and as a request to us.
var perfCases = []struct {
	name string
	args []string
	req  control.Perf
}{
	{"TCP", nil, control.Perf{}},
	{"TCP, -R", []string{"-R"}, control.Perf{Reverse: true}},
	{"TCP, -P 4", []string{"-P", "4"}, control.Perf{Parallel: 4}},
	{"TCP, --bidir", []string{"--bidir"}, control.Perf{Bidir: true}},
	{
		"TCP, -O 1 -w 256K -M 1000 -C reno",
		[]string{"-O", "1", "-w", "256K", "-M", "1000", "-C", "reno"},
		control.Perf{Omit: time.Second, Window: 256 << 10, MSS: 1000, Congestion: "reno"},
	},
	{"UDP, -b 10M", []string{"-u", "-b", "10M"}, control.Perf{Proto: control.PerfUDP, Rate: 10_000_000}},
	{
		"UDP, -b 5M -R -P 2",
		[]string{"-u", "-b", "5M", "-R", "-P", "2"},
		control.Perf{Proto: control.PerfUDP, Rate: 5_000_000, Reverse: true, Parallel: 2},
	},
}

// iperf3's client measures with our server. Its JSON has the figures of both ends, and they agree.
func TestIperf3Client(t *testing.T) { both(t, testIperf3Client) }

func testIperf3Client(t *testing.T, f family) {
	need(t, "iperf3")
	b := newBed(t, f, 0, nil)
	ended := make(chan control.PerfEnded, len(perfCases))
	t.Cleanup(b.c.Node.Watchers.Watch(func(e control.Event) {
		if p, ok := e.(control.PerfEnded); ok {
			ended <- p
		}
	}))
	testenv.Ask(t, b.c, control.PerfServe{Background: true})
	for _, tt := range perfCases {
		t.Run(tt.name, func(t *testing.T) {
			r := &row{peer: "iperf3 client", scenario: tt.name}
			f.report(t, r)
			args := append([]string{"-J", "-t", perfSeconds, "-c", f.ip(hostIP)}, tt.args...)
			out := b.must(b.command("iperf3", args...))
			theirs := perfReport(t, out)
			ours := <-ended
			require.Empty(t, ours.Problem)
			assert.Equal(t, theirs.Start.Cookie, ours.Report.Start.Cookie)
			if !tt.req.Bidir { // the reverse direction has a separate connection
				assert.Equal(t, theirs.End.SumReceived.Bytes, ours.Report.End.SumReceived.Bytes,
					"both report the receiver's figure")
			}
			checkPerf(t, &tt.req, theirs)
			r.bytes, r.took = theirs.End.SumReceived.Bytes, seconds(theirs.End.SumReceived.Seconds)
		})
	}
}

// Our client measures with iperf3's server.
func TestIperf3Server(t *testing.T) { both(t, testIperf3Server) }

func testIperf3Server(t *testing.T, f family) {
	need(t, "iperf3")
	b := newBed(t, f, 0, nil)
	b.start(b.command("iperf3", "-s"))
	require.NoError(t, b.dial(5201).Close(), "the server is up")
	for _, tt := range perfCases {
		t.Run(tt.name, func(t *testing.T) {
			r := &row{peer: "iperf3 server", scenario: tt.name}
			f.report(t, r)
			req := tt.req
			req.Addr, req.Time = f.at(kernelIP, 0).Addr(), time.Second
			got := b.perf(t, req)
			assert.Empty(t, got.Error)
			checkPerf(t, &req, &got)
			r.bytes, r.took = got.End.SumReceived.Bytes, seconds(got.End.SumReceived.Seconds)
		})
	}
}

// perf measures from C. iperf3's server opens its port again for each test, and refuses connections
// until then.
func (b *bed) perf(t *testing.T, req control.Perf) control.PerfReport {
	t.Helper()
	started := false
	req.Start = func(control.PerfStart) { started = true }
	for limit := time.Now().Add(patience); ; {
		got, err := control.Ask(t.Context(), b.c, req)
		anew := errors.Is(err, control.ErrBusy) || errors.Is(err, control.ErrRefused) ||
			errors.Is(err, control.ErrReset)
		if err == nil || started || !anew || time.Now().After(limit) {
			require.NoError(t, err)
			return got
		}
	}
}

// A second iperf3 client gets the same error as from iperf3's server. A client that is killed
// during its test leaves nothing behind.
func TestIperf3SecondClient(t *testing.T) { both(t, testIperf3SecondClient) }

func testIperf3SecondClient(t *testing.T, f family) {
	need(t, "iperf3")
	f.report(t, &row{peer: "iperf3 client", scenario: "busy, killed, interrupted"})
	b := newBed(t, f, 0, nil)
	began, ended := make(chan struct{}, 4), make(chan control.PerfEnded, 4)
	served := make(chan error, 1)
	listening := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := control.Ask(ctx, b.c, control.PerfServe{
			Listening: func(control.PerfServed) { close(listening) },
			Start:     func(control.PerfStart) { began <- struct{}{} },
			Ended:     func(e control.PerfEnded) { ended <- e },
		})
		served <- err
	}()
	<-listening
	first := b.start(b.commandFor(time.Minute, "iperf3", "-c", f.ip(hostIP), "-t", "3600"))
	<-began
	second := b.command("iperf3", "-c", f.ip(hostIP))
	out, err := second.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "the server is busy running a test. try again later")
	first.stop(syscall.SIGKILL)
	assert.Regexp(t, "control socket has closed|connection reset", (<-ended).Problem)

	first = b.start(b.commandFor(time.Minute, "iperf3", "-c", f.ip(hostIP), "-t", "3600"))
	<-began
	first.stop(syscall.SIGINT)
	assert.Contains(t, (<-ended).Problem, "the client has terminated")

	first = b.start(b.commandFor(time.Minute, "iperf3", "-c", f.ip(hostIP), "-t", "3600"))
	<-began
	cancel()
	<-first.done
	assert.Contains(t, first.out.String(), "the server has terminated")
	require.NoError(t, <-served)
}

// Each client that violates iperf3's protocol causes only one log line on our server.
func TestInvalidPerfClient(t *testing.T) { both(t, testInvalidPerfClient) }

func testInvalidPerfClient(t *testing.T, f family) {
	need(t, "socat")
	f.report(t, &row{peer: "Linux, socat", scenario: "nonsense for a server of iperf3's protocol"})
	b := newBed(t, f, 0, nil)
	said := make(chan string, 10)
	t.Cleanup(b.c.Node.Watchers.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	}))
	testenv.Ask(t, b.c, control.PerfServe{Background: true})
	cmd := b.command("socat", "-", "TCP:"+f.colon(hostIP, 5201))
	cmd.Stdin = io.LimitReader(strings.NewReader(strings.Repeat("GET / HTTP/1.1\r\n", 10)), 100)
	_ = cmd.Run() // the client is reset, or has exited before
	assert.Contains(t, <-said, "the connection does not begin with a cookie")
}

// perfReport parses iperf3's JSON into our type, which has the same names.
func perfReport(t *testing.T, out string) *control.PerfReport {
	t.Helper()
	var r control.PerfReport
	require.NoError(t, json.Unmarshal([]byte(out), &r), out)
	require.Empty(t, r.Error)
	return &r
}

// checkPerf checks the figures of a measurement.
func checkPerf(t *testing.T, req *control.Perf, r *control.PerfReport) {
	t.Helper()
	streams := max(1, req.Parallel)
	if req.Bidir {
		streams *= 2
		require.NotNil(t, r.End.SumReceivedBidirReverse)
		assert.Positive(t, r.End.SumReceivedBidirReverse.Bytes)
	}
	assert.Len(t, r.Start.Connected, streams)
	require.Len(t, r.End.Streams, streams)
	assert.NotEmpty(t, r.Intervals)
	assert.Positive(t, r.End.SumSent.Bytes)
	assert.Positive(t, r.End.SumReceived.Bytes)
	if req.Proto == control.PerfUDP {
		require.NotNil(t, r.End.Streams[0].UDP)
		require.NotNil(t, r.End.Sum)
		assert.Positive(t, *r.End.Sum.Packets)
		assert.Less(t, *r.End.Sum.LostPercent, 50.0, "at a rate far below the path's")
		return
	}
	require.NotNil(t, r.End.Streams[0].Sender.Retransmits)
	if req.Congestion != "" {
		assert.Equal(t, req.Congestion, r.End.SenderTCPCongestion)
		assert.Equal(t, req.Congestion, r.End.ReceiverTCPCongestion)
	}
	if !req.Reverse {
		assert.Positive(t, *r.Intervals[len(r.Intervals)-1].Streams[0].SndCwnd)
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
