package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

var peer = netip.MustParseAddr("10.0.0.1")

const (
	captureUse   = "capture [IF|all] [FILTER...] [-c N] [-C MB] [-W N] [--force] [--json] [-s BYTES] [-w FILE]"
	traceConnUse = "trace CONN [-c N] [--each] [--json] [--width COLUMNS]"
)

func TestLinesBecomeRequests(t *testing.T) {
	loss := func(percent float64, iface string) any {
		return control.SetLoss{Percent: percent, Iface: iface}
	}
	write := func(sid int, text string) any { return control.Write{SID: sid, Data: []byte(text)} }
	test := func(text string) any { return control.SendTest{Addr: peer, Text: text} }
	for _, tt := range []struct {
		lines string // equivalent lines, separated by |
		want  any
	}{
		{"interfaces|li|interfaces -s|interfaces --stats", control.Interfaces{}},
		{"interfaces -s -s|li", control.Interfaces{}},
		{"interfaces --clear", control.ClearCounters{}},
		{"impair", control.Impairments{}},
		{"impair if0|impair if0 out", control.Impairments{Iface: "if0"}},
		{
			"impair if0 out delay 20ms loss 2%",
			control.Impair{Iface: "if0", Way: control.WayOut, Words: "delay 20ms loss 2%"},
		},
		{"impair 0 loss  2%", control.Impair{Iface: "0", Words: "loss 2%"}},
		{"impair if0 both off", control.Impair{Iface: "if0", Way: control.WayBoth, Words: "off"}},
		{"impair off", control.Impair{Words: "off"}},
		{"neighbors|neighbors # who", control.Neighbors{}},
		{"routes --json|lr|  lr  ", control.Routes{}},
		{"capture stop|capture stop --json", control.StopCapture{}},
		{"capture stop 2", control.StopCapture{ID: 2}},
		{"capture list", control.Captures{}},
		{
			"capture -w x.pcapng -s 96 -c 5 -C 1.5 -W 3", control.StartCapture{
				File: "x.pcapng", Snaplen: 96, Count: 5, FileSize: 1_500_000, Files: 3,
			},
		},
		{
			"route add 10.3.0.0/16 via 10.0.0.1|route add 10.3.0.0/16 via 10.0.0.1 0",
			control.AddRoute{Prefix: netip.MustParsePrefix("10.3.0.0/16"), Via: peer},
		},
		{
			"route add default via 10.0.0.1 7|route add 0.0.0.0/0 via 10.0.0.1 7",
			control.AddRoute{Prefix: netip.MustParsePrefix("0.0.0.0/0"), Via: peer, Metric: 7},
		},
		{
			"route add 10.3.0.9 blackhole|route add 10.3.0.9/32 blackhole",
			control.AddRoute{
				Prefix: netip.MustParsePrefix("10.3.0.9/32"), Kind: control.RouteBlackhole,
			},
		},
		{"route del default", control.DelRoute{Prefix: netip.MustParsePrefix("0.0.0.0/0")}},
		{
			"route del 10.3.0.0/16 via 10.0.0.1",
			control.DelRoute{Prefix: netip.MustParsePrefix("10.3.0.0/16"), Via: peer},
		},
		{"sockets|ls", control.Sockets{}},
		{"sockets -i|ls --info", control.Sockets{Info: true}},
		{"up if0", control.SetLink{Iface: "if0", Up: true}},
		{"down 1", control.SetLink{Iface: "1"}},
		{"delay 0.1", control.Impair{Way: "out", Words: "delay 100ms"}},
		{"delay 0.0015 0.25", control.Impair{Way: "out", Words: "delay 1.5ms reorder 75.0000%"}},
		{"delay 0|delay 2 0", control.Impair{Way: "out", Words: "off"}},
		{"delay", control.Impairments{}},
		{"info 1", control.Sockets{Info: true, Timers: true}},
		{"lc", control.Show{Key: "tcp.congestion"}},
		{"lossyforward 2|lossy 0.02|drop 0.02", loss(2, "")},
		{"lossyforward 0.5", loss(0.5, "")},
		{"lossyforward 100 if1|lossy 1 if1|drop 1.0 if1", loss(100, "if1")},
		{"lossyforward|lossy|drop", control.Loss{}},
		{"accept 6000|a 6000", control.Listen{Port: 6000}},
		{"serve 80", control.Serve{Port: 80}},
		{`serve 80 "a folder"`, control.Serve{Port: 80, Dir: "a folder"}},
		{"fetch 10.0.0.1/x", control.Fetch{URL: "10.0.0.1/x"}},
		{"fetch http://10.0.0.1:81/x page.html", control.Fetch{URL: "http://10.0.0.1:81/x", Path: "page.html"}},
		{"connect 10.0.0.1 80|c 10.0.0.1 80", control.Connect{Addr: peer, Port: 80}},
		{"s 0 hello|send 0 hello|s  0 hello", write(0, "hello")},
		{`s 3  two "blanks" and it's `, write(3, ` two "blanks" and it's `)},
		{"s 0 --help me", write(0, "--help me")},
		{"s 0 FILL the bucket up", write(0, "FILL the bucket up")},
		{"s 0 FILL x 5|s 0 FILL 0x78 5|send 0 FILL 120 5", write(0, "xxxxx")},
		{"send 10.0.0.1  # not a comment", test(" # not a comment")},
		{"send 10.0.0.1 0 text", test("0 text")},
		{"recv 1 5|r 1 5|r 1 5 n", control.Read{SID: 1, N: 5}},
		{"recv 1 5 y|r 1 5 y", control.Read{SID: 1, N: 5, Full: true}},
		{"shutdown 1 read|sd 1 read|sd 1 r", control.Shutdown{SID: 1, How: control.ShutdownRead}},
		{"shutdown 1|sd 1 write|sd 1 w", control.Shutdown{SID: 1, How: control.ShutdownWrite}},
		{"shutdown 1 both", control.Shutdown{SID: 1, How: control.ShutdownBoth}},
		{"close 1|cl 1", control.Close{SID: 1}},
		{"window 1", control.Window{SID: 1}},
		{"cc 1 reno", control.Congestion{SID: 1, Name: "reno"}},
		{"verbose on", control.Verbose{On: true, SID: control.AllSockets}},
		{"verbose off 1", control.Verbose{SID: 1}},
		{
			`pcap start "a b.pcapng" --snaplen 64|pcap start --snaplen=64 a\ b.pcapng`,
			control.PcapStart{File: "a b.pcapng", Snaplen: 64},
		},
		{"pcap stop", control.PcapStop{}},
		{"udp listen 53|udp  l 53 ", control.ListenUDP{Port: 53}},
		{"udp send 10.0.0.1 53  two \"words\"|udp s  10.0.0.1  53  two \"words\"", control.SendUDP{
			Addr: peer, Port: 53, Data: []byte(` two "words"`),
		}},
		{"udp send 10.0.0.1 53 FILL x 3", control.SendUDP{Addr: peer, Port: 53, Data: []byte("xxx")}},
		{"ping -c3 10.0.0.1 -i.2|ping 10.0.0.1 -c 3 -n -4 --interval 0.2", control.Ping{
			Addr: peer, Count: 3, Size: 56, TTL: 64, Preload: 1, Interval: 200 * time.Millisecond,
			Timeout: 10 * time.Second, Fragment: "dont",
		}},
		{"ping 10.0.0.1 -p ff0", control.Ping{
			Addr: peer, Size: 56, TTL: 64, Preload: 1, Interval: time.Second, Count: 4,
			Timeout: 10 * time.Second, Pattern: []byte{255, 0}, Fragment: "dont",
		}},
		{"ping 10.0.0.1 -fAbO -w 1.5 -W 2 -t 9 -s 0 -p ff00 -M do -l 3 -Q 0x10", control.Ping{
			Addr: peer, Size: -1, TTL: 9, TOS: 16, Preload: 3, Interval: time.Second,
			Timeout: 2 * time.Second, Deadline: 1500 * time.Millisecond, Pattern: []byte{255, 0},
			Fragment: "do", Flood: true, Adaptive: true, Broadcast: true, Outstanding: true,
		}},
		{"traceroute 10.0.0.1|tracert 10.0.0.1", control.Traceroute{
			Addr: peer, First: 1, MaxHops: 30, Queries: 3, Parallel: 16, Size: 60,
		}},
		{"traceroute 2001:db8::9|traceroute -6 [2001:db8::9]", control.Traceroute{
			Addr: netip.MustParseAddr("2001:db8::9"), First: 1, MaxHops: 30, Queries: 3, Parallel: 16,
			Size: 80,
		}},
		{"traceroute -nI -f 2 -m 9 -q 1 -N 4 -w 0.5,0 -p 7 -t 8 -F -s 10.0.0.2 10.0.0.1 100", control.Traceroute{
			Addr: peer, Kind: "icmp", First: 2, MaxHops: 9, Queries: 1, Parallel: 4, Size: 100,
			Port: 7, TOS: 8, DontFragment: true, Source: "10.0.0.2", Wait: 500 * time.Millisecond, Here: -1,
		}},
		{"show", control.Show{}},
		{"show tcp.", control.Show{Key: "tcp."}},
		{"set tcp.options off", control.Set{Key: "tcp.options", Value: "off"}},
	} {
		for line := range strings.SplitSeq(tt.lines, "|") {
			t.Run(line, func(t *testing.T) {
				s := open(t, &fake{}, Config{})
				require.NoError(t, s.Execute(t.Context(), line))
				asked := s.node.requests()
				for i, r := range asked {
					asked[i] = withoutCalls(r)
				}
				assert.Equal(t, []any{tt.want}, asked)
			})
		}
	}
}

// TestCaptureOfNoInterface checks that an argument that looks like an interface's name is not
// parsed as a filter. The node's error lists the interfaces.
func TestCaptureOfNoInterface(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]control.StartCapture{
		"if9":  {Iface: "if9", Filter: "port 80", File: "f"},
		"tun7": {Iface: "tun7", Filter: "port 80", File: "f"},
		"tcp":  {Filter: "tcp port 80", File: "f"},
	} {
		s := open(t, &fake{}, Config{})
		require.NoError(t, s.Execute(t.Context(), "capture "+word+" port 80 -w f"))
		assert.Contains(t, s.node.requests(), want)
	}
}

// withoutCalls returns a request without its functions, because functions cannot be compared.
func withoutCalls(req any) any {
	switch r := req.(type) {
	case control.Ping:
		r.Begun, r.Each = nil, nil
		return r
	case control.Traceroute:
		r.Each = nil
		return r
	case control.Fetch:
		r.Progress = nil
		return r
	}
	return req
}

func TestAnOldFileWantsTheProtocolBeforeTheText(t *testing.T) {
	s := open(t, &fake{old: true}, Config{})
	require.NoError(t, s.Execute(t.Context(), "send 10.0.0.1 17 some  text"))
	require.NoError(t, s.Execute(t.Context(), "send 1 written"))
	assert.Equal(t, []any{
		control.SendTest{Addr: peer, Proto: 17, Text: "some  text"},
		control.Write{SID: 1, Data: []byte("written")},
	}, s.node.requests())
	err := s.Execute(t.Context(), "send 10.0.0.1")
	assert.EqualError(t, err, "send: PROTO is missing")
	err = s.Execute(t.Context(), "send 10.0.0.1 some text")
	assert.EqualError(t, err, `send: "some" is not a number from 0 to 255`)
}

func TestALongFillIsWrittenInPieces(t *testing.T) {
	s := open(t, &fake{}, Config{})
	require.NoError(t, s.Execute(t.Context(), "s 0 FILL a 150000"))
	total := 0
	for _, r := range s.node.requests() {
		w := r.(control.Write)
		assert.LessOrEqual(t, len(w.Data), pieceSize)
		total += len(w.Data)
	}
	assert.Equal(t, 150000, total)
	assert.Equal(t, "Sent 150000 bytes\n", s.out.String())
}

// These are the usage lines of the commands with many flags.
const (
	pingUse = "ping ADDR [-A] [-b] [-c N] [-w SECONDS] [-f] [-i SECONDS] [-4] [-6] [--json]" +
		" [--json-stream] [-n] [-O] " +
		"[-p HEX] [-M HOW] [-l N] [-q] [-s BYTES] [-I ADDR] [-W SECONDS] [-D] [-Q TOS] [-t TTL]"
	udpUse   = "udp listen PORT | send ADDR PORT TEXT"
	traceUse = "traceroute ADDR [BYTES] [-F] [-f N] [-I] [-i IF] [-4] [-6] [--json]" +
		" [--json-stream] [-m N] [--mtu] [-n] " +
		"[-p PORT] [-q N] [-z T] [-N N] [-s ADDR] [-T] [-t TOS] [-w MAX[,HERE,NEAR]]"
)

const routeAdd = "route add PREFIX {via VADDR|blackhole|unreachable|prohibit} [METRIC]"

func TestInvalidLinesSendNoRequest(t *testing.T) {
	for _, tt := range []struct{ line, text, use string }{
		{"bogus", "no command \"bogus\"; `help` lists all commands", ""},
		{"intrfaces", `no command "intrfaces"; did you mean interfaces?`, ""},
		{"conect 1 2", `no command "conect"; did you mean connect?`, ""},
		{"cd", "no command \"cd\"; `help` lists all commands", ""},
		{"tcpdump -i if0", "no command \"tcpdump\"; use `capture`", ""},
		{"inter", `no command "inter"; did you mean interfaces?`, ""},
		{"\x1b[31m", "no command \"\\x1b[31m\"; `help` lists all commands", ""},
		{
			"route", "route: add, del or get is missing",
			"route add PREFIX {via VADDR|blackhole|unreachable|prohibit} [METRIC] | del PREFIX [via VADDR] | get ADDR",
		},
		{"route add", "route add: PREFIX is missing", routeAdd},
		{
			"route add ten via 10.0.0.1",
			`route add: "ten" is not a prefix like 10.1.0.0/16, an address or default`, routeAdd,
		},
		{
			"route add 10.3.0.0/16",
			"route add: expected via VADDR, blackhole, unreachable or prohibit after PREFIX", routeAdd,
		},
		{"route add default via x", `route add: "x" is not an IP address`, routeAdd},
		{"route add 2001:db8::/129 via ::1", `route add: "2001:db8::/129": the length of a prefix must be 0 to 128`, routeAdd},
		{"route add fe80::%if0/64 via ::1", `route add: "fe80::%if0/64": a prefix has no zone`, routeAdd},
		{"route add [2001:db8::/64 via ::1", `route add: "[2001:db8::" is not an IP address: must have both brackets, or none`, routeAdd},
		{
			"route add default via 10.0.0.1 -1",
			`route add: "-1" is not a metric of 0 or more`, routeAdd,
		},
		{
			"route add default blackhole one",
			`route add: "one" is not a metric of 0 or more`, routeAdd,
		},
		{
			"route add default blackhole 1 2",
			`route add: unexpected argument: "2"`, routeAdd,
		},
		{
			"route del default 10.0.0.1",
			"route del: expected PREFIX, or PREFIX via VADDR", "route del PREFIX [via VADDR]",
		},
		{"up", "up: IF is missing", "up IF"},
		{"up if0 if1", `up: unexpected argument: "if1"`, "up IF"},
		{"connect 10.0.0.1", "connect: PORT is missing", "connect ADDR PORT [--json]"},
		{"connect 10.0.0 80", `connect: "10.0.0" is not an IP address`, "connect ADDR PORT [--json]"},
		{"connect ::ffff:10.0.0.1 80", `connect: "::ffff:10.0.0.1" is an IPv4-mapped address: must be 10.0.0.1`, "connect ADDR PORT [--json]"},
		{"connect [10.0.0.1] 80", `connect: "[10.0.0.1]" is not an IP address`, "connect ADDR PORT [--json]"},
		{"connect 2001:db8::1] 80", `connect: "2001:db8::1]" is not an IP address: must have both brackets, or none`, "connect ADDR PORT [--json]"},
		{"connect 10.0.0.1 0", `connect: "0" is not a port (1 to 65535)`, "connect ADDR PORT [--json]"},
		{"a 65536", `accept: "65536" is not a port (1 to 65535)`, "accept PORT [--json]"},
		{"cl -1", `close: "-1" is not a socket number`, "close SID"},
		{"cl x", `close: "x" is not a socket number`, "close SID"},
		{"s", "s: SID is missing", "s SID TEXT"},
		{"s x text", `s: "x" is not a socket number`, "s SID TEXT"},
		{"s 0", "s: TEXT is missing", "s SID TEXT"},
		{"s 0 FILL xy 3", `s: "xy" is neither one character nor a byte like 0x2a`, "s SID TEXT"},
		{"s 0 FILL x many", `s: "many" is not a number of bytes`, "s SID TEXT"},
		{"send", "send: ADDR is missing", "send ADDR TEXT"},
		{"send 10.0.0.1", "send: TEXT is missing", "send ADDR TEXT"},
		{"send 10.0.0 x", "send: 10.0.0: no such host: must be a name, or an address like 10.1.0.2 or 2001:db8::2 (`neighbors` and `routes` show some)", "send ADDR TEXT"},
		{"r 0 0", `recv: "0" is not a number from 1 to 67108864`, "recv SID N [y|n] [--json]"},
		{"r 0 9 yes", `recv: "yes" is neither y nor n`, "recv SID N [y|n] [--json]"},
		{"sd 0 up", `shutdown: "up": must be read, write or both`, "shutdown SID [read|write|both]"},
		{
			"lossyforward 101", `lossyforward: "101" is not a number from 0 to 100`,
			"lossyforward [PERCENT] [IF] [--json]",
		},
		{
			"lossyforward -1", `lossyforward: "-1" is not a number from 0 to 100`,
			"lossyforward [PERCENT] [IF] [--json]",
		},
		{"r -1 3", `recv: "-1" is not a socket number`, "recv SID N [y|n] [--json]"},
		{"lossy 2", `lossy: "2" is not a number from 0 to 1`, "lossy [FRACTION] [IF] [--json]"},
		{"drop NaN", `lossy: "NaN" is not a number from 0 to 1`, "lossy [FRACTION] [IF] [--json]"},
		{"verbose maybe", `verbose: "maybe" is neither on nor off`, "verbose on|off [SID]"},
		{"pcap", "pcap: start or stop is missing", "pcap start FILE | stop"},
		{"pcap pause", `pcap: "pause": must be start or stop`, "pcap start FILE | stop"},
		{"pcap start", "pcap start: FILE is missing", "pcap start FILE [--force] [--snaplen BYTES]"},
		{"capture -s 70000", "capture: -s 70000: must be 0 to 65535 bytes", captureUse},
		{"capture -C 5", "capture: -C and -W need -w FILE", captureUse},
		{"capture -w x -W 5", "capture: -W needs -C", captureUse},
		{"capture stop x", "capture: \"x\" is not a capture's number; `capture list` lists them", captureUse},
		{"capture stop 1 2", `capture: unexpected argument: "2"`, captureUse},
		{"trace", "trace: CONN is missing", traceConnUse},
		{"trace 1 --width -3", "trace: --width -3: must be 0 or more", traceConnUse},
		{"udp", "udp: listen or send is missing", udpUse},
		{"udp hear 53", `udp: "hear" is neither listen nor send`, udpUse},
		{"udp listen", "udp: PORT is missing", udpUse},
		{"udp listen 53 54", `udp: unexpected argument: "54"`, udpUse},
		{"udp listen x", `udp: "x" is not a port (1 to 65535)`, udpUse},
		{"udp send", "udp: ADDR is missing", udpUse},
		{"udp send 10.0.0 53 x", "udp: 10.0.0: no such host: must be a name, or an address like 10.1.0.2 or 2001:db8::2 (`neighbors` and `routes` show some)", udpUse},
		{"udp send 10.0.0.1", "udp: PORT is missing", udpUse},
		{"udp send 10.0.0.1 53", "udp: TEXT is missing", udpUse},
		{"udp send 10.0.0.1 53 FILL x 65508", `udp: "65508" is not a number of bytes from 1 to 65507`, udpUse},
		{"ping", "ping: ADDR is missing", pingUse},
		{"ping 10.0.0.256", "ping: 10.0.0.256: no such host: must be a name, or an address like 10.1.0.2 or 2001:db8::2 (`neighbors` and `routes` show some)", pingUse},
		{"ping 2001:db8::zz", `ping: "2001:db8::zz" is not an IP address`, pingUse},
		{"ping -6 10.0.0.1", "ping: -6: 10.0.0.1 is an IPv4 address", pingUse},
		{"ping -c 1 -4 [2001:db8::1]", "ping: -4: 2001:db8::1 is an IPv6 address", pingUse},
		{"ping 10.0.0.1 -c -3", "ping: -c -3: must be 1 or more", pingUse},
		{"ping 10.0.0.1 -c 0", "ping: -c 0: must be 1 or more", pingUse},
		{"ping 10.0.0.1 -s 70000", "ping: -s 70000: must be 0 to 65507 bytes", pingUse},
		{"ping 10.0.0.1 -i 0", "ping: -i 0: must be 0.002 or more seconds", pingUse},
		{"ping 10.0.0.1 -i NaN", "ping: -i NaN: must be 0.002 or more seconds", pingUse},
		{"ping 10.0.0.1 -i x", "ping: -i x: must be a number of seconds, such as 0.5; -i: wait SECONDS between requests", pingUse},
		{"ping 10.0.0.1 -t 300", "ping: -t 300: must be 1 to 255", pingUse},
		{"ping 10.0.0.1 -W 0", "ping: -W 0: must be more than 0 seconds", pingUse},
		{"ping 10.0.0.1 -w -1", "ping: -w -1: must be more than 0 seconds", pingUse},
		{"ping 10.0.0.1 -p xyz", "ping: -p xyz: must be hex digits, two a byte, up to 16 bytes", pingUse},
		{"ping 10.0.0.1 -M maybe", "ping: -M maybe: must be do, dont or want", pingUse},
		{"ping 10.0.0.1 -Q 256", "ping: -Q 256: must be 0 to 255", pingUse},
		{"ping 10.0.0.1 -l 0", "ping: -l 0: must be 1 to 65536", pingUse},
		{"ping 10.0.0.1 -z", "ping: unknown shorthand flag: 'z' in -z", pingUse},
		{"traceroute 10.0.0.1 -f 9 -m 8", "traceroute: -f 9: must be 1 to 8 (-m)", traceUse},
		{"traceroute 10.0.0.1 -q 11", "traceroute: -q 11: must be 1 to 10", traceUse},
		{"traceroute 10.0.0.1 -N 0", "traceroute: -N 0: must be 1 to 255", traceUse},
		{"traceroute 10.0.0.1 -p 70000", "traceroute: -p 70000: must be 1 to 65535", traceUse},
		{"traceroute 10.0.0.1 -w x", "traceroute: -w x: must be numbers MAX[,HERE,NEAR], MAX > 0", traceUse},
		{"traceroute 10.0.0.1 -w 1,2,3,4", "traceroute: -w 1,2,3,4: must be MAX[,HERE,NEAR]", traceUse},
		{"traceroute 10.0.0.1 -z x", "traceroute: -z x: must be seconds (at most 10) or milliseconds (above 10)", traceUse},
		{"traceroute 10.0.0.1 -IT", "traceroute: -I and -T cannot be used together", traceUse},
		{"traceroute 10.0.0.1 0", `traceroute: "0" is not a number from 1 to 65000`, traceUse},
		{
			"traceroute 10.0.0.1 -m 0", "traceroute: -m 0: must be 1 to 255",
			traceUse,
		},
		{"sleep long", `sleep: "long" is not a time like 1.5 or 150ms`, "sleep [T]"},
		{"sleep -1s", `sleep: "-1s" is not a time like 1.5 or 150ms`, "sleep [T]"},
		{`up "if0`, "up: unclosed quote: \"if0", "up IF"},
		{"up --fast if0", "up: unknown flag: --fast", "up IF"},
		{
			"sf f 10.0.0.1 p", `sendfile: "p" is not a port (1 to 65535)`,
			"sendfile PATH ADDR PORT [--json] [--json-stream] [--no-verify] [--offset BYTES]",
		},
		{"serve http", `serve: "http" is not a port (1 to 65535)`, "serve PORT [DIR] [--json]"},
		{"fetch", "fetch: URL is missing", "fetch URL [PATH] [-C] [--force] [--json] [--json-stream] [-o FILE] [-r RANGE]"},
		{"help nothing", "no command \"nothing\"; `help` lists all commands", ""},
	} {
		t.Run(tt.line, func(t *testing.T) {
			s := open(t, &fake{}, Config{})
			err := s.Execute(t.Context(), tt.line)
			require.EqualError(t, err, tt.text)
			require.ErrorIs(t, err, control.ErrUsage)
			assert.Equal(t, 2, ExitCode(err))
			var wrong *usageError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, tt.use, wrong.use)
			assert.Empty(t, s.node.requests())
			assert.Empty(t, s.out.String())
		})
	}
}

// TestErrorsHaveAdvice checks that the node's errors are printed without internal terms, and with
// advice.
func TestErrorsHaveAdvice(t *testing.T) {
	var answer error
	f := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		if show, ok := req.(control.Show); ok && show.Key == "" {
			return nil, nil, false
		}
		if _, ok := req.(control.About); ok {
			return nil, nil, false
		}
		return nil, answer, true
	}}
	s := open(t, f, Config{})
	for _, tt := range []struct {
		line   string
		answer error
		want   string
	}{
		{
			"r 0 5", fmt.Errorf("read: 0: %w", control.ErrNotConnected),
			"recv: read: 0: socket is not connected: it is a listener; `ls` shows which sockets are connections",
		},
		{
			"rdt close 9", fmt.Errorf("rdt close: %w", control.ErrNoSuchSocket),
			"rdt close: no such socket",
		},
		{
			"cc 1 x", fmt.Errorf("cc: socket 1: %w: unknown: want one of reno", control.ErrUsage),
			"cc: socket 1: unknown: want one of reno",
		},
		{
			"pcap start x", errors.New("open /x: no such file or directory"),
			"pcap start: /x: no such file or directory",
		},
		{
			"set tcp.congestian bbr", fmt.Errorf("setting: %w: want one", control.ErrUsage),
			`set: no setting "tcp.congestian"; did you mean tcp.congestion?`,
		},
		{
			"set tcp 1", fmt.Errorf("setting: %w: want one", control.ErrUsage),
			"set: no setting \"tcp\"; `show tcp` lists those with this prefix",
		},
		{
			"sendfile x 10.0.0.1 1", errors.New("sendfile: open /x: no such file or directory"),
			"sendfile: /x: no such file or directory",
		},
		{
			"show nothing", fmt.Errorf("setting: %w: want one", control.ErrUsage),
			"show: no setting \"nothing\"; `show` lists them",
		},
		{
			"set tcp.congestion x",
			fmt.Errorf("set tcp.congestion: %w: tcp: config: unknown: want one", control.ErrUsage),
			"set tcp.congestion: unknown: want one",
		},
	} {
		answer = tt.answer
		err := s.Execute(t.Context(), tt.line)
		assert.EqualError(t, err, tt.want)
		assert.Equal(t, errors.Is(tt.answer, control.ErrUsage), ExitCode(err) == 2, tt.line)
	}
}

func TestNodeErrorsNameTheCommand(t *testing.T) {
	s := open(t, &fake{}, Config{})
	err := s.Execute(t.Context(), "s 9 text")
	require.EqualError(t, err, "s: 9: no such socket; `ls` lists them")
	require.ErrorIs(t, err, control.ErrNoSuchSocket)
	assert.Equal(t, 1, ExitCode(err))
}

func TestEmptyLinesAreNotErrors(t *testing.T) {
	s := open(t, &fake{}, Config{})
	for _, line := range []string{"", "   ", "# a comment", "\t# another", "\r"} {
		require.NoError(t, s.Execute(t.Context(), line))
	}
	assert.Empty(t, s.node.requests())
}

func TestPanicBecomesAnError(t *testing.T) {
	node := &fake{do: func(context.Context, any) (any, error, bool) { panic("BUG: tcp: lost") }}
	s := open(t, &fake{}, Config{})
	s.env.op = node
	err := s.Execute(t.Context(), "routes")
	require.EqualError(t, err, "BUG: this command panicked (the node continues): BUG: tcp: lost")
	err = s.Execute(t.Context(), "rf out 6000")
	assert.EqualError(t, err,
		"recvfile out: BUG: this command panicked (the node continues): BUG: tcp: lost")
}

func TestInterruptStopsTheRunningCommand(t *testing.T) {
	blocked := make(chan struct{})
	node := &fake{do: func(ctx context.Context, req any) (any, error, bool) {
		if _, ok := req.(control.Read); !ok {
			return nil, nil, false
		}
		close(blocked)
		<-ctx.Done()
		return nil, ctx.Err(), true
	}}
	s := open(t, node, Config{})
	done := make(chan error)
	go func() { done <- s.run(t.Context(), "r 0 5") }()
	<-blocked
	s.Interrupt()
	require.ErrorIs(t, <-done, ErrInterrupted)
	require.NoError(t, s.run(t.Context(), "routes"))
	s.Interrupt() // no command runs yet: this cancels the line that was just typed
	require.ErrorIs(t, s.run(t.Context(), "sleep"), ErrInterrupted)
	assert.Equal(t, 130, ExitCode(ErrInterrupted))
}

func TestSleep(t *testing.T) {
	s := open(t, &fake{}, Config{})
	require.NoError(t, s.Execute(t.Context(), "sleep 1ms"))
	require.NoError(t, s.Execute(t.Context(), "sleep 0.001"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Execute(ctx, "sleep"), context.DeadlineExceeded)
}

// Fetching a page that does not exist fails, so that a script stops there.
func TestFetchFailsForHTTPErrors(t *testing.T) {
	s := open(t, &fake{}, Config{})
	err := s.Execute(t.Context(), "fetch 10.0.0.1/missing")
	require.EqualError(t, err, "fetch: 10.0.0.1/missing: HTTP error: 404 Not Found")
	assert.Equal(t, 1, ExitCode(err))
	assert.Contains(t, s.out.String(), "404 Not Found, 26 bytes")
}

func TestEveryListHasJSON(t *testing.T) {
	for _, line := range []string{
		"interfaces", "neighbors", "routes", "sockets -i", "lossyforward", "impair", "impair if0 off", "lossy", "window 1",
		"accept 80", "connect 10.0.0.1 80", "recv 1 5", "cc 1 reno", "show", "set a b", "pcap stop",
		"ping 10.0.0.1 -c 1", "traceroute 10.0.0.1", "sendfile f 10.0.0.1 80", "recvfile f 80",
		"transfers", "serve 80", "fetch 10.0.0.1",
	} {
		t.Run(line, func(t *testing.T) {
			s := open(t, &fake{}, Config{})
			require.NoError(t, s.Execute(t.Context(), line+" --json"))
			require.NoError(t, s.await(t.Context()))
			text := s.out.String()
			assert.True(t, json.Valid([]byte(text)), "%q", text)
			assert.Equal(t, 1, strings.Count(text, "\n"), "one line: %q", text)

			s = open(t, &fake{}, Config{JSON: true})
			require.NoError(t, s.Execute(t.Context(), line))
			require.NoError(t, s.await(t.Context()))
			assert.Equal(t, text, s.out.String())
		})
	}
}

// Without --json, commands that take the rest of the line as text use the session's format.
func TestTextCommandsFollowTheSession(t *testing.T) {
	for _, line := range []string{"send 10.0.0.1 hello", "s 1 hello", "send 1 FILL x 70000"} {
		s := open(t, &fake{}, Config{JSON: true})
		require.NoError(t, s.Execute(t.Context(), line))
		assert.True(t, json.Valid([]byte(s.out.String())), "%s: %q", line, s.out.String())
	}
}

func TestExitCodes(t *testing.T) {
	assert.Equal(t, 0, ExitCode(nil))
	assert.Equal(t, 1, ExitCode(errors.New("any")))
	assert.Equal(t, 2, ExitCode(&printedError{&lineError{cause: control.ErrUsage}}))
	assert.Equal(t, 130, ExitCode(&lineError{cause: ErrInterrupted}))
}
