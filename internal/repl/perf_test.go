package repl

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// perfSample returns a report for a test with the protocol in r. All numbers are round.
func perfSample(r *control.Perf, server bool) control.PerfReport {
	const mega = 1 << 20
	v := func(n int64) *int64 { return &n }
	f := func(x float64) *float64 { return &x }
	no := false
	var p control.PerfReport
	p.Start.TestStart.Protocol = strings.ToUpper(string(r.Proto))
	peer := &control.PerfHost{Host: "10.0.0.1", Port: 5201}
	if server {
		p.Start.AcceptedConnection = peer
	} else {
		p.Start.ConnectingTo = peer
	}
	if r.Reverse {
		p.Start.TestStart.Reverse = 1
	}
	if r.Bidir {
		p.Start.TestStart.Bidir = 1
	}
	row := func(socket int, sends, end bool) control.PerfRow {
		row := control.PerfRow{
			Socket: socket, End: 1, Seconds: 1, Bytes: 100 * mega, BitsPerSecond: 800 * mega, Sender: sends,
		}
		udp := r.Proto == control.PerfUDP
		if !end {
			row.Omitted = &no
		}
		switch {
		case udp && sends && !end:
			row.Packets = v(1000)
		case udp:
			row.JitterMS, row.LostPackets, row.Packets, row.LostPercent = f(0.5), v(15), v(1000), f(1.5)
		case r.Proto == control.PerfTCP && sends:
			row.Retransmits = v(3)
			if !end && socket != 0 {
				row.SndCwnd = v(1023 << 10)
			}
		}
		return row
	}
	ways := []bool{r.Reverse == server}
	if r.Bidir {
		ways = []bool{!server, server}
	}
	var i control.PerfInterval
	for n, sends := range ways {
		for k := range r.Parallel {
			socket := 5 + 2*(n+k)
			p.Start.Connected = append(p.Start.Connected, control.PerfConnected{
				Socket: socket, LocalHost: "10.0.0.2", LocalPort: 40000, RemoteHost: "10.0.0.1", RemotePort: 5201,
			})
			i.Streams = append(i.Streams, row(socket, sends, false))
			from, to := row(socket, sends, true), row(socket, sends, true)
			to.Retransmits = nil
			p.End.Streams = append(p.End.Streams, control.PerfStreamEnd{Sender: &from, Receiver: &to})
		}
	}
	i.Sum = row(0, ways[0], false)
	p.Intervals = []control.PerfInterval{i}
	p.End.SumSent, p.End.SumReceived = row(0, ways[0], true), row(0, ways[0], true)
	return p
}

// perfNode returns a node that answers with perfSample.
func perfNode() *fake {
	return &fake{do: func(_ context.Context, req any) (any, error, bool) {
		switch r := req.(type) {
		case control.Perf:
			p := perfSample(&r, false)
			if r.Start != nil {
				r.Start(p.Start)
				r.Interval(p.Intervals[0])
			}
			return p, nil, true
		case control.PerfServe:
			if r.Listening != nil {
				p := perfSample(&control.Perf{Proto: control.PerfTCP, Parallel: 1}, true)
				r.Listening(control.PerfServed{})
				r.Start(p.Start)
				r.Interval(p.Intervals[0])
				r.Ended(control.PerfEnded{Port: 5201, Report: p})
				r.Ended(control.PerfEnded{Port: 5201, Problem: "10.0.0.1:9: control socket has closed unexpectedly"})
			}
			return control.PerfServed{Local: netip.MustParseAddrPort("0.0.0.0:5201"), Tests: 1}, nil, true
		case control.PerfServers:
			return []control.PerfServed{{Local: netip.MustParseAddrPort("0.0.0.0:5201"), Tests: 3, Busy: true}}, nil, true
		case control.PerfClose:
			return control.Nothing{}, nil, true
		}
		return nil, nil, false
	}}
}

// TestPerfOutput compares the output of perf with testdata/perf.golden.
func TestPerfOutput(t *testing.T) {
	transcript(t, "perf.golden", perfNode, []string{
		"perf -c 10.0.0.1", "perf 10.0.0.1 -R -P 2", "perf 10.0.0.1 -P 2 -f M", "perf 10.0.0.1 --bidir",
		"perf 10.0.0.1 -u", "perf 10.0.0.1 -u -R -P 2", "perf 10.0.0.1 --proto rdt", "perf 10.0.0.1 -J",
		"perf 10.0.0.1 --json-stream", "perf -s -1", "perf -s -D", "perf", "perf --end", "help perf",
	})
}

func TestPerfRequests(t *testing.T) {
	f := perfNode()
	s := open(t, f, Config{})
	require.NoError(t, s.Execute(t.Context(), "perf 10.0.0.1 -J -p 99 -u -b 1.5M/10 -n 2K -l 1200 -P 3 -R -i 0.5 -O 2 -S 16 -w 64K"))
	asked, ok := f.asked[0].(control.Perf)
	require.True(t, ok)
	asked.Start, asked.Interval = nil, nil
	assert.Equal(t, control.Perf{
		Addr: peer, Port: 99, Proto: control.PerfUDP, Rate: 1_500_000, Burst: 10, Bytes: 2048, Length: 1200,
		Parallel: 3, Reverse: true, Every: 500 * time.Millisecond, Omit: 2 * time.Second, TOS: 16, Window: 64 << 10,
	}, asked)
	require.NoError(t, s.Execute(t.Context(), "perf -c 10.0.0.1 -b 0 -i 0 -C bbr -M 1000 -N -k 5"))
	asked, ok = f.asked[1].(control.Perf)
	require.True(t, ok)
	asked.Start, asked.Interval = nil, nil
	assert.Equal(t, control.Perf{
		Addr: peer, Port: 5201, Proto: control.PerfTCP, Rate: control.PerfUnlimited, Every: -1, Blocks: 5,
		Parallel: 1, Congestion: "bbr", MSS: 1000, NoDelay: true,
	}, asked)
}

func TestInvalidPerfLines(t *testing.T) {
	for line, want := range map[string]string{
		"perf here":                 "no such host",
		"perf 10.0.0.1 -c 10.0.0.1": "cannot be used together",
		"perf 10.0.0.1 -s":          "cannot be used together",
		"perf 10.0.0.1 -D":          "need -s",
		"perf -s -t 4":              "--time is for clients: use it without -s",
		"perf 10.0.0.1 -t 4 -n 5":   "-t, -n and -k cannot be used together",
		"perf 10.0.0.1 -t 0.5":      "must be 1 to 86400 seconds, a whole number",
		"perf 10.0.0.1 -P 129":      "must be 1 to 128",
		"perf 10.0.0.1 -b ten":      "must be bits a second like 500K",
		"perf 10.0.0.1 -b 1M/0":     "must be a rate with 1 to 1000 blocks",
		"perf 10.0.0.1 -n 1Q":       "must be a number like 1500, 64K or 10M",
		"perf 10.0.0.1 -i 0.01":     "must be 0, or 0.1 to 60 seconds",
		"perf 10.0.0.1 --proto x":   "must be tcp, udp, rcp or rdt",
		"perf 10.0.0.1 -f kb":       "must be k, m, g, t, K, M, G or T",
		"perf 10.0.0.1 -R --bidir":  "cannot be used together",
		"perf 10.0.0.1 -p 0":        "must be 1 to 65535",
		"perf 10.0.0.1 -O 1.5":      "must be 0 to 600 seconds, a whole number",
	} {
		s := open(t, perfNode(), Config{})
		err := s.Execute(t.Context(), line)
		require.ErrorIs(t, err, control.ErrUsage, line)
		assert.ErrorContains(t, err, want)
		assert.Equal(t, 2, ExitCode(err))
	}
}

// A failed test has the exit status 1 in every output format. With --json it also prints a document
// with the error.
func TestFailedPerf(t *testing.T) {
	refused := fmt.Errorf("perf: unable to connect to server: %w", control.ErrRefused)
	for _, flag := range []string{"", "-J", "--json-stream"} {
		for name, f := range map[string]*fake{
			"refused": {do: func(context.Context, any) (any, error, bool) { return nil, refused, true }},
			"cut off": {do: func(context.Context, any) (any, error, bool) {
				return control.PerfReport{Error: refused.Error()}, nil, true
			}},
		} {
			f.old = false
			s := open(t, &fake{}, Config{})
			s.env.op = f
			err := s.Execute(t.Context(), "perf 10.0.0.1 "+flag)
			require.ErrorContains(t, err, "unable to connect to server: connection refused", name)
			assert.Equal(t, 1, ExitCode(err))
			if flag == "-J" {
				var r control.PerfReport
				require.NoError(t, json.Unmarshal([]byte(s.out.String()), &r))
				assert.Contains(t, r.Error, "connection refused")
			}
		}
	}
}
