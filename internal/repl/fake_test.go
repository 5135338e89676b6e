package repl

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// fake is a simulated node. It answers for a small fixed network and records its requests.
type fake struct {
	mu       sync.Mutex
	old      bool
	asked    []any
	watchers map[int]func(control.Event)
	// do, if set, answers a request. If it returns handled as false, the fixed network answers.
	do func(ctx context.Context, req any) (answer any, err error, handled bool)
}

func (f *fake) Watch(g func(control.Event)) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.watchers == nil {
		f.watchers = map[int]func(control.Event){}
	}
	n := len(f.watchers)
	f.watchers[n] = g
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.watchers, n)
	}
}

func (f *fake) emit(e control.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.watchers {
		g(e)
	}
}

func (f *fake) Do(ctx context.Context, req any) (any, error) {
	f.mu.Lock()
	if _, quiet := req.(control.About); !quiet {
		f.asked = append(f.asked, req)
	}
	do := f.do
	f.mu.Unlock()
	if do != nil {
		if answer, err, handled := do(ctx, req); handled {
			return answer, err
		}
	}
	return f.fixed(req)
}

func (f *fake) fixed(req any) (any, error) {
	switch r := req.(type) {
	case control.About:
		return control.Node{Name: "B", OldGrammar: f.old}, nil
	case control.Interfaces:
		return someInterfaces(), nil
	case control.Neighbors:
		return []control.Neighbor{
			{Iface: "if0", Addr: netip.MustParseAddr("10.0.0.1"), UDP: "127.0.0.1:5000"},
		}, nil
	case control.Routes:
		return someRoutes(), nil
	case control.SetLink:
		return control.Interface{Name: r.Iface, Up: r.Up}, nil
	case control.Loss:
		return []control.LinkLoss{{Iface: "if0", Percent: 2}, {Iface: "if1", Percent: 0.5}}, nil
	case control.SetLoss:
		return []control.LinkLoss{{Iface: "if0", Percent: r.Percent}}, nil
	case control.Impairments:
		return []control.Impairment{{Iface: "if0", Way: control.WayOut, Words: "nothing"}}, nil
	case control.Impair:
		return []control.Impairment{{Iface: r.Iface, Way: control.WayOut, Words: r.Words}}, nil
	case control.ClearCounters, control.AddRoute, control.DelRoute:
		return control.Nothing{}, nil
	case control.RIP:
		return someRIP(), nil
	case control.SendTest:
		return control.TestSent{Bytes: 20 + len(r.Text)}, nil
	case control.Show:
		return someSettings(r.Key), nil
	case control.Set:
		return control.Setting{Key: r.Key, Value: r.Value}, nil
	case control.Resolve:
		if strings.EqualFold(r.Name, "C") {
			return control.Resolved{Name: r.Name, Addrs: []netip.Addr{netip.MustParseAddr("10.1.0.2")}}, nil
		}
		return nil, control.Also(fmt.Errorf("%s: no such host", r.Name), control.ErrNoSuchName)
	case control.PcapStop:
		return control.Capture{File: "b.pcapng", Packets: 12, Missed: 1}, nil
	case control.PcapStart, control.Verbose:
		return control.Nothing{}, nil
	}
	if answer, ok := fixedCapture(req); ok {
		return answer, nil
	}
	return fixedSocket(req)
}

// fixedCapture answers requests for captures and traces with two packets and with the segments of
// the ladder.
func fixedCapture(req any) (any, bool) {
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	switch r := req.(type) {
	case control.Record:
		done := control.Captured{Packets: 2, Bytes: 80, Missed: 7, File: r.File}
		begun(r.Begun)
		switch {
		case r.Lines:
			r.Packet(control.Packet{
				At: since, Iface: "if0", Sent: true, Length: 40,
				Text: "IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [S], seq 7, win 512, length 0",
			})
			r.Packet(control.Packet{
				At: since, Iface: "if1", Length: 40, Drop: "ttl exceeded",
				Text: "IP 10.0.0.1.33000 > 10.1.0.2.80: Flags [.], seq 8, win 512, length 0",
			})
		case r.File == "":
			r.Piece([]byte("pcap"))
			r.Piece([]byte("ng"))
		}
		return done, true
	case control.StartCapture:
		return control.Capturing{ID: 2, Iface: "all", Filter: r.Filter, File: r.File}, true
	case control.StopCapture:
		return control.Captured{Packets: 1, Files: 3, File: "x-2.pcapng"}, true
	case control.Captures:
		return []control.Capturing{
			{ID: 2, Kind: "capture", Iface: "if0", File: "x.pcapng", Since: since, Packets: 5},
			{Kind: "trace", Iface: "all", Filter: "tcp port 80", Since: since, Missed: 9},
		}, true
	case control.Trace:
		begun(r.Begun)
		for _, s := range story() {
			r.Segment(s)
		}
		return control.Traced{Segments: uint64(len(story())), Missed: 3}, true
	}
	return nil, false
}

func fixedSocket(req any) (any, error) {
	switch r := req.(type) {
	case control.Sockets:
		return someSockets(r.Info), nil
	case control.ListenUDP:
		return control.Socket{SID: 3}, nil
	case control.SendUDP:
		return control.DatagramSent{SID: 3, Bytes: len(r.Data)}, nil
	case control.Listen, control.Connect, control.Serve:
		return control.Socket{SID: 2}, nil
	case control.Write:
		if r.SID == 9 {
			return nil, fmt.Errorf("%d: %w", r.SID, control.ErrNoSuchSocket)
		}
		return control.Written{Bytes: len(r.Data)}, nil
	case control.Read:
		return control.Data{Bytes: []byte("hello")}, nil
	case control.Window:
		return control.Windows{SID: r.SID, Send: 65535, Receive: 4096}, nil
	case control.Congestion:
		return control.Socket{SID: r.SID}, nil
	case control.Shutdown, control.Close:
		return control.Nothing{}, nil
	case control.SendFile:
		r.Progress(control.Progress{Bytes: 10, Total: 10, Elapsed: time.Second})
		return someTransfer(r.Path, true), nil
	case control.RecvFile:
		r.Progress(control.Progress{Total: -1})
		return someTransfer(r.Path, false), nil
	case control.Transfers:
		return someUnderway(), nil
	case control.StopTransfer:
		if r.ID != 3 {
			return nil, fmt.Errorf("%d: %w; `transfers` lists them", r.ID, control.ErrNoSuchTransfer)
		}
		return control.Nothing{}, nil
	case control.Fetch:
		return somePage(r), nil
	case control.Ping:
		return somePing(r), nil
	case control.Traceroute:
		return someHops(r), nil
	default:
		return nil, fmt.Errorf("%T: %w", req, control.ErrUnsupported)
	}
}

// requests returns the requests since the last call.
func (f *fake) requests() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := f.asked
	f.asked = nil
	return asked
}

func someInterfaces() []control.Interface {
	return []control.Interface{
		{
			Name: "if0", Addr: netip.MustParsePrefix("10.0.0.2/24"), Up: true, UDP: "127.0.0.1:5001",
			MTU: 1400, Offload: "gso",
			In: control.Counters{Packets: 120, Bytes: 64000, Fragments: 40, Fragmented: 2, Drops: []control.Drop{
				{Reason: "lossy", Packets: 3}, {Reason: "ttl exceeded", Packets: 1},
			}},
			Out: control.Counters{Packets: 7, Bytes: 420, Errors: 2, Fragments: 3, Fragmented: 1},
		},
		{
			Index: 1, Name: "if1", Addr: netip.MustParsePrefix("192.168.100.200/24"),
			UDP: "127.0.0.1:5002", MTU: 576, Offload: "plain", Problem: "somebody took it away",
		},
	}
}

func someRoutes() []control.Route {
	return []control.Route{
		{
			Origin: control.OriginStatic, Prefix: netip.MustParsePrefix("0.0.0.0/0"),
			NextHop: netip.MustParseAddr("10.0.0.2"), Iface: "if0",
		},
		{Origin: control.OriginLocal, Prefix: netip.MustParsePrefix("10.0.0.0/24"), Iface: "if0"},
		{
			Origin: control.OriginRIP, Prefix: netip.MustParsePrefix("10.2.0.0/24"),
			NextHop: netip.MustParseAddr("10.1.0.2"), Iface: "if1", Cost: 1,
		},
	}
}

func someSockets(info bool) []control.Socket {
	list := []control.Socket{
		{
			Local: netip.MustParseAddrPort("0.0.0.0:9999"), Remote: netip.MustParseAddrPort("0.0.0.0:0"),
			State: "LISTEN",
		},
		{
			SID: 1, Local: netip.MustParseAddrPort("10.1.0.2:9999"),
			Remote: netip.MustParseAddrPort("10.0.0.1:46846"), State: "ESTABLISHED",
			Timer: &control.Timer{Name: "keepalive", In: 6*time.Minute + 29*time.Second},
		},
		{
			SID: -1, Local: netip.MustParseAddrPort("10.1.0.2:9999"),
			Remote: netip.MustParseAddrPort("10.0.0.1:46847"), State: "SYN_RECEIVED",
			Timer: &control.Timer{Name: "on", In: 2450 * time.Millisecond, Retries: 1},
		},
	}
	if info {
		list[1].Info = someInfo()
	}
	return list
}

func someInfo() *control.Info {
	i := &control.Info{
		CAState: "open", CongestionControl: "reno", SACK: true, Timestamps: true, SndWScale: 7, RcvWScale: 8,
		RTO: 204 * time.Millisecond, RTT: 412 * time.Microsecond, RTTVar: 31 * time.Microsecond,
		MinRTT: 200 * time.Microsecond, SndMSS: 1360, PMTU: 1400, SndCwnd: 13600, SndSsthresh: 27200,
		SndWnd: 65535, RcvWnd: 131072, BytesSent: 5000, BytesRetrans: 1360, BytesAcked: 3640,
		SegsOut: 9, SegsIn: 5, Delivered: 3, DeliveryRate: 8000, Unacked: 1,
		Limited: "cwnd", LimitedFor: 1500 * time.Millisecond,
		LastDataSent: 12 * time.Millisecond, LastDataRecv: time.Second, LastAckRecv: 2 * time.Millisecond,
	}
	i.TotalRetrans, i.TotalRTO, i.TailProbes = 1, 1, 2
	return i
}

func someSettings(key string) []control.Setting {
	all := []control.Setting{
		{
			Key: "tcp.congestion", Value: "cubic", Doc: "of new connections: bbr, cubic, reno",
			Values: []string{"bbr", "cubic", "reno"},
		},
		{Key: "tcp.options", Value: "on", Doc: "send options in a SYN: on, off"},
		{Key: "tcp.rto_min", Value: "1ms", Doc: "least retransmission timeout"},
	}
	return slices.DeleteFunc(all, func(v control.Setting) bool {
		return !strings.HasPrefix(v.Key, key)
	})
}

func someTransfer(path string, sent bool) control.Transfer {
	t := control.Transfer{
		Path: path, Sent: sent, Bytes: 1048576, Seconds: 0.025, MBPerS: 41.943,
		SHA256: strings.Repeat("ab", 32),
	}
	if sent {
		t.Retransmits, t.Timeouts, t.TailProbes, t.MSS = 12, 1, 2, 1360
		t.RTT, t.MinRTT = 300*time.Microsecond, 150*time.Microsecond
	}
	return t
}

func someUnderway() []control.Underway {
	since := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	return []control.Underway{
		{
			ID: 3, Path: "big", Sent: true, What: "sendfile", Since: since,
			Peer:     netip.MustParseAddrPort("10.0.0.1:80"),
			Progress: control.Progress{ID: 3, Bytes: 5, Total: 10, Elapsed: time.Second},
		},
		{ID: 4, Path: "got\x1b", What: "recvfile", Port: 9000, Since: since},
		{ID: 5, Path: "far", Sent: true, What: "sendfile", Since: since},
	}
}

func somePage(r control.Fetch) control.Page {
	p := control.Page{
		URL: r.URL, Code: 200, Status: "200 OK", Type: "text/html", Bytes: 26, Seconds: 0.0015,
		Path: r.Path,
	}
	if strings.HasSuffix(r.URL, "/missing") {
		p.Code, p.Status = 404, "404 Not Found"
	}
	if r.Path == "" {
		p.Body = []byte("<h1>H</h1>\n<p>\x1b[31mhello")
	}
	return p
}

func somePing(r control.Ping) control.PingResult {
	if r.Begun != nil {
		begun(r.Begun)
	}
	if r.Addr == netip.MustParseAddr("10.9.9.9") {
		if r.Each != nil {
			r.Each(control.Reply{From: netip.MustParseAddr("10.0.0.1"), Seq: 1, Problem: "Unreachable"})
		}
		return control.PingResult{Addr: r.Addr, Sent: 1, Errors: 1, Elapsed: time.Second}
	}
	if r.Each != nil {
		for i := range r.Count {
			r.Each(control.Reply{
				From: r.Addr, Seq: i + 1, TTL: 64, Size: r.Bytes() + 8,
				RTT: 466 * time.Microsecond * time.Duration(i*i*100+1),
			})
		}
	}
	return control.PingResult{
		Addr: r.Addr, Sent: r.Count, Received: r.Count, Elapsed: 1002 * time.Millisecond,
		Min: 400 * time.Microsecond, Avg: 500 * time.Microsecond, Max: 600 * time.Microsecond,
		Mdev: 50 * time.Microsecond,
	}
}

func someHops(r control.Traceroute) []control.Hop {
	first, second := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	hops := []control.Hop{
		{TTL: 1, Replies: []control.Reply{
			{From: first, RTT: 105 * time.Microsecond},
			{From: first, RTT: 27 * time.Microsecond},
			{From: second, RTT: 14 * time.Microsecond},
		}},
		{TTL: 2, Replies: []control.Reply{{}, {}, {}}},
		{TTL: 3, Replies: []control.Reply{
			{From: r.Addr, RTT: 2 * time.Millisecond, Mark: "!H"},
		}},
	}
	if r.Each != nil {
		for _, h := range hops {
			r.Each(h)
		}
	}
	return hops
}

// session is a shell that is connected to a fake node, with its output.
type session struct {
	*Shell
	node *fake
	out  *guarded
	err  *guarded
}

// guarded is a buffer that is safe for concurrent use.
type guarded struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.b.Write(p)
}

// String returns the text written since the last call.
func (g *guarded) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := g.b.String()
	g.b.Reset()
	return text
}

func open(t *testing.T, node *fake, cfg Config) *session {
	t.Helper()
	s := &session{node: node, out: &guarded{}, err: &guarded{}}
	cfg.Operator, cfg.Out, cfg.Err = node, s.out, s.err
	shell, err := New(t.Context(), cfg)
	require.NoError(t, err)
	s.Shell = shell
	return s
}

func begun(f func()) {
	if f != nil {
		f()
	}
}
