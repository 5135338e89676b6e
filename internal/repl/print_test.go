package repl

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestOutput compares the output of each command with testdata/output.golden.
func TestOutput(t *testing.T) {
	transcript(t, "output.golden", func() *fake { return &fake{} }, []string{
		"interfaces", "interfaces -s", "interfaces --json", "li", "ln", "neighbors", "routes", "lr", "sockets",
		"sockets -tni", "sockets -tno", "sockets -Hl", "sockets -u", "ls", "ls -i", "sockets --json",
		"capture", "capture if1 tcp port 80", "capture --json", "capture if0 -w x.pcapng", "capture -w -", "capture stop",
		"capture list", "trace 1", "trace tcp port 80 --each -c 3", "trace 1 --json", "up if0", "down if0", "lossyforward", "lossyforward 2",
		"lossyforward 0.5 if1", "lossy 0.02", "drop 0.3 if0", "send 10.0.0.1 hello", "accept 80",
		"connect 10.0.0.1 80", "s 1 hello", "recv 1 5", "shutdown 1", "close 1", "window 1",
		"cc 1 cubic", "lc", "info 1", "delay 0.1 0.25", "delay 0", "sendfile big.bin 10.0.0.1 80", "recvfile new.bin 80", "serve 80", "serve 80 nets", "fetch 10.0.0.1",
		"fetch 10.0.0.1/page page.html", "fetch 10.0.0.1/page --json",
		"transfers", "ping 10.0.0.1 -c 3", "ping 10.9.9.9 -c 1", "traceroute 10.0.0.9", "verbose on 1",
		"pcap start b.pcapng", "pcap stop", "show", "set tcp.options off", "help", "help send", "help set", "help cc",
		"recv --help", "pcap start -h", "udp listen 53", "udp send 10.0.0.1 53 who is there", "help ping", "rip", "rip --json", "show rip", "help traceroute", "help udp",
	})
}

// TestEvents compares the line and the JSON of every event with testdata/events.golden.
func TestEvents(t *testing.T) {
	sock := someSockets(false)[1]
	events := []control.Event{
		control.TestReceived{Src: peer, Dst: peer.Next(), TTL: 15, Text: "some  text\x1b]0;x\a\n"},
		control.Accepted{Listener: 0, Socket: sock},
		control.SocketClosed{Socket: sock},
		control.SocketClosed{Socket: sock, Problem: control.ErrReset.Error()},
		control.Segment{SID: 1, Sent: true, Text: "10.0.0.1:80 > 10.0.0.2:81 [S] seq 7"},
		control.Segment{SID: -1, Text: "10.0.0.3:81 > 10.0.0.1:80 [S] seq 5"},
		control.Segment{SID: 1, Text: "10.0.0.2:81 > 10.0.0.1:80 [S.] seq 9 ack 8"},
		control.TransferEnded{Transfer: someTransfer("f", true)},
		control.Datagram{SID: 3, From: someSockets(false)[1].Remote, Data: []byte("text\x1b\n")},
		control.Undelivered{SID: 3, To: someSockets(false)[1].Remote, Problem: "connection refused"},
		control.LinkChanged{Interface: control.Interface{Name: "if0"}},
		control.LinkChanged{Interface: control.Interface{Name: "if0", Up: true}},
		control.Message{Text: "if0: the peer is not there yet"},
		control.RIPNews{Iface: "if0", Text: "10.5.0.0/16 via 10.0.0.2 cost 2"},
		control.RIPNews{Text: "10.5.0.0/16 lost"},
		control.PerfEnded{Port: 5201, Problem: "10.0.0.1:9: the client has terminated"},
		control.PerfEnded{Port: 5201, Report: perfSample(&control.Perf{Proto: control.PerfTCP, Parallel: 1}, true)},
	}
	var b strings.Builder
	for _, asJSON := range []bool{false, true} {
		s := open(t, &fake{}, Config{JSON: asJSON})
		for _, e := range events {
			s.printEvent(e)
			b.WriteString("out: " + s.out.String() + "\nerr: " + s.err.String() + "\n")
		}
	}
	golden(t, "events.golden", b.String())
}

// transcript compares the output of lines with a file of testdata. Each line has its own shell.
func transcript(t *testing.T, name string, node func() *fake, lines []string) {
	t.Helper()
	var b strings.Builder
	for _, line := range lines {
		s := open(t, node(), Config{})
		err := s.Execute(t.Context(), line)
		require.NoError(t, s.await(t.Context()), line)
		b.WriteString("> " + line + "\n" + s.out.String() + s.err.String())
		if err != nil {
			b.WriteString("error: " + err.Error() + "\n")
		}
	}
	golden(t, name, b.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run with -update once")
	assert.Equal(t, strings.ReplaceAll(string(want), "\r\n", "\n"), got)
}

func TestFloodPingPrintsMissingReplies(t *testing.T) {
	node := &fake{do: func(_ context.Context, req any) (any, error, bool) {
		r := req.(control.Ping)
		r.Begun()
		for seq := 1; seq <= 3; seq++ {
			r.Each(control.Reply{Seq: seq, Late: true})
		}
		r.Each(control.Reply{Seq: 4, From: r.Addr})
		return control.PingResult{Addr: r.Addr, Sent: 4, Received: 1}, nil, true
	}}
	s := open(t, &fake{}, Config{Width: wide(80)})
	s.env.op = node
	require.NoError(t, s.Execute(t.Context(), "ping -f -c 4 10.0.0.1"))
	assert.Equal(t, eraseLine+"."+eraseLine+".."+eraseLine+"..."+eraseLine, s.err.String())
}

// TestCourseTables checks that the tables of the course's commands equal those of its
// specification, including spaces. They leave out problems with links and neighbors.
func TestCourseTables(t *testing.T) {
	s := open(t, &fake{}, Config{})
	for line, want := range map[string]string{
		"li": "Name  Addr/Prefix State\n" +
			" if0  10.0.0.2/24   up\n" +
			" if1  192.168.100.200/24 down\n",
		"lr": "T       Prefix   Next hop   Cost\n" +
			"S    0.0.0.0/0   10.0.0.2      -\n" +
			"L  10.0.0.0/24   LOCAL:if0     0\n" +
			"R  10.2.0.0/24   10.1.0.2      1\n",
		"ln": "Iface          VIP          UDPAddr\n" +
			" if0     10.0.0.1   127.0.0.1:5000\n",
		"ls": "SID      LAddr LPort      RAddr RPort       Status\n" +
			"0      0.0.0.0  9999    0.0.0.0     0       LISTEN\n" +
			"1     10.1.0.2  9999   10.0.0.1 46846  ESTABLISHED\n",
	} {
		require.NoError(t, s.Execute(t.Context(), line))
		assert.Equal(t, want, s.out.String(), line)
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain, ünïcode\tand a tab": "plain, ünïcode\tand a tab",
		"\x1b[2Jgone":               `\x1b[2Jgone`,
		"two\nlines\r":              `two\x0alines\x0d`,
		"not \xff\xef UTF-8":        `not \xff\xef UTF-8`,
		"\u009b31m \u202e":          `\u009b31m \u202e`,
		"a real \uFFFD":             "a real \uFFFD",
	} {
		assert.Equal(t, want, printable(text))
	}
}

func TestSplit(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		"  a\tb ":                 {"a", "b"},
		`"a b"c 'd "e' ""`:        {"a bc", `d "e`, ""},
		`a\ b C:\new\dir \# # no`: {"a b", `C:\new\dir`, "#"},
		`"C:\new \"x\"" '\ '`:     {`C:\new "x"`, `\ `},
		`a#b \`:                   {"a#b", `\`},
	} {
		got, err := split(text)
		require.NoError(t, err)
		assert.Equal(t, want, got, text)
	}
	_, err := split(`a "b`)
	assert.ErrorIs(t, err, errQuote)
}

func TestBar(t *testing.T) {
	p := control.Progress{Bytes: 25_000_000, Total: 100_000_000, Elapsed: 1e9}
	assert.Equal(t, "#####--------------- \x2025% 25.0 MB/s 0:03 left", Bar(p, 20, false))
	p.Total = -1
	assert.Equal(t, "25.0 MB, 25.0 MB/s", Bar(p, 20, false))
	assert.Equal(t, "25.0 MB, stalled", Bar(p, 20, true))
	p.Total = 100_000_000
	assert.Equal(t, " 25% stalled", Bar(p, 0, true))
	assert.Equal(t, "100%    0 B/s --:-- left", Bar(control.Progress{}, 0, false))
	for n, want := range map[float64]string{
		0: "   0 B", 999: " 999 B", 999.6: " 1.0 kB", 12_345: "12.3 kB", 99_960: " 100 kB",
		999_600: " 1.0 MB", 5e9: " 5.0 GB", 3e15: "3000 TB",
	} {
		assert.Equal(t, want, size(n))
	}
	assert.Equal(t, "1:02:03", clock(3723e9))
}

func FuzzLine(f *testing.F) {
	for _, line := range []string{
		"interfaces", `s 0 "text`, "send 10.0.0.1 x", "r 1 5 y --json", "help pcap", `pcap start 'a b'`,
		"s 0 FILL x 3", "\xff\x00", "lossy 1e-3", "--help", "__complete s ", "h", "-h",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		first, _ := cut(strings.TrimLeft(line, " \t"))
		switch first {
		case "sleep", "source", "wait":
			t.Skip("waits, or reads files")
		}
		if len(line) > 200 || strings.Contains(line, "FILL") {
			t.Skip("slow")
		}
		s := open(t, &fake{}, Config{})
		if err := s.Execute(t.Context(), line); err != nil {
			assert.NotContains(t, err.Error(), "internal error")
		}
		s.Complete(line)
		s.abandon()
	})
}

// The first column is as wide as its widest cell: here a socket number, not the heading SID.
func TestFirstColumnWidens(t *testing.T) {
	text := table("<SID| LPort", []int{1000}, func(*int) []string { return []string{"1000", "80"} })
	assert.Equal(t, "SID  LPort\n1000    80\n", text)
}

func TestLossNamesItsInterface(t *testing.T) {
	set := control.SetLoss{Percent: 2, Iface: "0"}
	on := []control.LinkLoss{{Iface: "if0", Percent: 2}}
	assert.Equal(t, "dropping 2% of forwarded packets on if0", printLossSet(set, on))
	assert.Equal(t, "dropping 2% of forwarded packets", printLossSet(control.SetLoss{Percent: 2}, on))
}

// With -s -s the output accounts for every received packet: delivered, passed on, or dropped.
func TestPacketCountersAddUp(t *testing.T) {
	in := control.Counters{
		Packets: 9, Delivered: 4, Forwarded: 3, Drops: []control.Drop{{Reason: "no route", Packets: 2}},
	}
	assert.Contains(t, printCounters("RX", in, 2), "     2\n        delivered 4, passed on 3\n")
	assert.NotContains(t, printCounters("RX", in, 1), "delivered")
	assert.NotContains(t, printCounters("TX", in, 2), "delivered")
}
