package drill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// opening establishes a connection that the peer opens, in ten lines.
const opening = `// RFC 9293 §3.5
0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 32792 <mss 1000,sackOK,nop,nop,nop,wscale 7>
+0  > S. 0:0(0) ack 1 <...>
+.1 < . 1:1(0) ack 1 win 257
+0  accept(3, ..., ...) = 4
+0  setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0
`

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "x.pkt:1: no events"},
		{"/* open", "x.pkt:1: unterminated comment"},
		{"\n1 close(3) = 0", "x.pkt:2: the first event is not at time 0"},
		{"0 close(3)", "the end: want \"=\""},
		{"0 frob(3) = 0", "unknown system call frob"},
		{"0 close(3) = -1", "must have an errno"},
		{"0 close(3) = 0 EPIPE", "must have an errno"},
		{"0 read(3, ..., `", "unterminated `"},
		{"0 < S 0:0(0)", "an inbound segment needs a win"},
		{"0 < S 0:1(0) win 5", "0:1 is not 0 bytes"},
		{"0 < Q 0:0(0) win 5", "\"Q\" are not flags"},
		{"0 < SS 0:0(0) win 5", "\"SS\" are not flags"},
		{"0 < S 0:0(0) win 70000", "a window is out of range: 70000"},
		{"0 < S 0:0(0) win 5 <mss 1460,sackOK>", "options of 6 bytes"},
		{"0 < S 0:0(0) win 5 <...>", "<...> is for outbound"},
		{"0 < S 0:0(0) win 5 <tick 1>", "\"tick\" is not an option"},
		{"0 > S 0:0(0) <sack 1:2 3:4 5:6 7:8 9:10>", "too many SACK blocks"},
		{"0~1 close(3) = 0", "only an outbound segment may have a time range"},
		{"* close(3) = 0", "only an outbound segment may have a time range"},
		{"0~1 > S 0:0(0)\n2~1 > S 0:0(0)", "x.pkt:2: the time range ends before it starts"},
		{"0 > [ect2] S 0:0(0)", "want noecn, ect0"},
		{"0 < [ect01] S 0:0(0) win 1", "[ect01] is for outbound"},
		{"-1 close(3) = 0", "is not a time"},
		{"0 > icmp unreachable", "an outbound icmp"},
		{"0 %{ tcpi_rtt == 1 }%", "want assert"},
		{"0 %{\nassert tcpi_rtt =< 1 }%", "x.pkt:2: \"=\" after the condition"},
		{"0 %{ assert (" + strings.Repeat("(", 400) + " }%", "nested too deeply"},
		{"0 close(" + strings.Repeat("[", 40) + ") = 0", "nested too deeply"},
		{"0 `sysctl 'a` ", "unterminated quote '"},
		{"--mtu=\n0 close(3) = 0", "want a time"},
	} {
		_, err := Parse("x.pkt", c.text)
		if c.want == "" {
			assert.NoError(t, err, c.text)
			continue
		}
		if assert.Error(t, err, c.text) {
			assert.Contains(t, err.Error(), c.want, c.text)
			assert.Contains(t, err.Error(), "x.pkt:", c.text)
		}
	}
}

func TestRun(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"range", "+0 write(4, ..., 9) = 9\n+0~+.1 > P. 1:10(9) ack 1\n", ""},
		{"any time", "+0 write(4, ..., 9) = 9\n* > P. 1:10(9) ack 1 <...>\n", ""},
		{"several segments in one line", "+0 write(4, ..., 2500) = 2500\n+0 > P. 1:2501(2500) ack 1\n", ""},
		{
			"missing", "+0 > P. 1:10(9) ack 1\n",
			"x.pkt:11: the host sent nothing by 0.104000\n\twant 0.100000 > P. 1:10(9) ack 1",
		},
		{
			"unexpected", "+0 write(4, ..., 9) = 9\n",
			"x.pkt:11: the host sent a segment that no line expects:\n" +
				"\tgot  0.100000 > P. 1:10(9) ack 1",
		},
		{
			"flags", "+0 write(4, ..., 9) = 9\n+0 > . 1:10(9) ack 1\n",
			"x.pkt:12: the flags are P.\n\twant 0.100000 > . 1:10(9) ack 1\n\tgot  0.100000 > P. 1:10(9) ack 1",
		},
		{"length", "+0 write(4, ..., 9) = 9\n+0 > P. 1:9(8) ack 1\n", "there are 9 bytes"},
		{"sequence", "+0 write(4, ..., 9) = 9\n+0 > P. 2:11(9) ack 1\n", "the sequence number is 1"},
		{"acknowledgment", "+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 2\n", "the acknowledgment is 1"},
		{"window", "+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1 win 1\n", "the window is"},
		{"options", "+0 write(4, ..., 9) = 9\n+0 > P. 1:10(9) ack 1 <mss 9>\n", "the options are <>"},
		{"time", "+0 write(4, ..., 9) = 9\n+.1 > P. 1:10(9) ack 1\n", "the time is wrong"},
		{"past", "0 write(4, ..., 9) = 9\n", "the time is already 0.100000"},
		{"result", "+0 write(4, ..., 9) = 8\n", "write returned 9 at 0.100000, want 8"},
		{
			"errno", "+0 fcntl(4, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 read(4, ..., 9) = -1 EPIPE\n",
			"read returned -1 EAGAIN at 0.100000, want -1 EPIPE",
		},
		{"note", "+0 recv(4, ..., 9, MSG_DONTWAIT) = -1 EAGAIN (Resource temporarily unavailable)\n", ""},
		{"blocking", "+0 read(4, ..., 9) = 9\n", "read blocks, want 9 at once"},
		{"blocks until", "+0...0.3 read(4, ..., 9) = 9\n+.3 < P. 1:10(9) ack 1 win 9\n+0 > . 1:1(0) ack 10\n", ""},
		{
			"returns late", "+0...0.2 read(4, ..., 9) = 9\n+.3 < P. 1:10(9) ack 1 win 9\n",
			"x.pkt:11: read returned at 0.400000, want 0.300000",
		},
		{
			"returns early", "+0...0.9 read(4, ..., 9) = 9\n+.3 < P. 1:10(9) ack 1 win 9\n",
			"x.pkt:11: read returned at 0.400000, want 1.000000",
		},
		{"never returns", "+0...0.9 read(4, ..., 9) = 9\n", "x.pkt:11: read has not returned by"},
		{
			"assertion", "+0 %{\nassert tcpi_snd_cwnd == 11, tcpi_snd_cwnd\n}%\n",
			"x.pkt:12: assert tcpi_snd_cwnd == 11, tcpi_snd_cwnd failed at 0.100000: 10",
		},
		{"name", "+0 %{ assert tcpi_nothing }%\n", "unknown name tcpi_nothing"},
		{"expression", "+0 %{ assert 1 < 2 <= 2 and not 7 // 2 == 4 or False, max(1, 2)\n" +
			"assert -7 % 3 == 2 and 2 + 3 * 4 == 14 and (2 + 3) * 4 == 20 and 0x10 & 16 != 0\n" +
			"assert abs(1 - 3) == 2 and 5 / 2 == 2.5 and min(3, 2) == 2 }%\n", ""},
		{"division", "+0 %{ assert 1 / 0 }%\n", "division by zero"},
		{"socket", "+0 close(7) = 0\n", "no socket 7"},
		{
			"setsockopt", "+0 setsockopt(4, SOL_TCP, TCP_NOTHING, [1], 4) = 0\n",
			"unknown option TCP_NOTHING",
		},
		{"getsockopt", "+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [0], [4]) = 0\n", ""},
		{
			"wrong getsockopt", "+0 getsockopt(4, SOL_SOCKET, SO_ERROR, [111], [4]) = 0\n",
			"the value is [0]",
		},
		{"poll", "+0 poll([{fd=4, events=POLLIN|POLLOUT, revents=POLLOUT}], 1, 0) = 1\n", ""},
		{"wrong poll", "+0 poll([{fd=4, events=POLLIN, revents=POLLIN}], 1, 0) = 1\n", "POLLIN of descriptor 4 is false"},
		{"ioctl", "+0 ioctl(4, SIOCINQ, [0]) = 0\n", ""},
		{"sysctl", "+0 `sysctl -q net.ipv4.tcp_retries2=3`\n", "cannot change while the host runs"},
		{"command", "+0 `reboot`\n", "unknown command reboot"},
		{"ports", "+0 < 4000 > 81 S 0:0(0) win 9\n+0 > 81 > 4000 R. 0:0(0) ack 1\n", ""},
		{
			"echo", "+0 < . 1:1(0) ack 1 win 9 <nop,nop,TS val 7 ecr 9>\n",
			"ecr 9: no line has shown this timestamp",
		},
		{"icmp", "+0 < icmp unreachable nonsense [1:10(9)]\n", "unknown icmp unreachable nonsense"},
		{"flag", "+0 send(4, ..., 9, MSG_FASTOPEN) = 9\n", "unknown flag MSG_FASTOPEN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse("x.pkt", opening+c.text)
			require.NoError(t, err)
			err = s.Run()
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

func TestScriptHead(t *testing.T) {
	const socket = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n"
	for _, c := range []struct{ text, want string }{
		{"--tolerance_usecs=10000\n--mtu=1400\n--ip_version=ipv4\n--local_ip=10.0.0.1\n", ""},
		{"`sysctl -q net.ipv4.tcp_retries2=3 net.ipv4.tcp_rmem=\"4096 8192 16384\"\n" +
			"ethtool -K tun0 tso off && ip link set dev tun0 mtu 1400`\n", ""},
		{"--frob\n", "x.pkt:1: --frob=: unknown option"},
		{"--mtu=9\n", "x.pkt:1: --mtu=9: want a number from 68 to 65535"},
		{"--local_ip=::1\n", "x.pkt:1: "},
		{"\n`sysctl net.ipv4.ip_forward=1`\n", "x.pkt:2: net.ipv4.ip_forward: unknown setting"},
		{"`sysctl net.ipv4.tcp_retries2=x`\n", "\"x\" is not a number"},
		{"`ip route flush`\n", "want ip link set"},
	} {
		s, err := Parse("x.pkt", c.text+socket)
		if err == nil {
			err = s.Run()
		}
		if c.want == "" {
			assert.NoError(t, err, c.text)
		} else if assert.Error(t, err, c.text) {
			assert.Contains(t, err.Error(), c.want)
		}
	}
}

// FuzzScript checks that no script makes the interpreter or its host panic, and that every error
// names its line.
func FuzzScript(f *testing.F) {
	f.Add(opening)
	f.Add(opening + "+0 write(4, ..., 5000) = 5000\n+.2 < . 1:1(0) ack 1001 win 9 <nop,nop,sack 2001:3001>\n")
	f.Add(opening + "+.1 < icmp unreachable frag_needed mtu 600 [1:1001(1000)]\n+0 shutdown(4, SHUT_WR) = 0\n")
	f.Add("--mtu=1400\n`sysctl net.ipv4.tcp_retries2=3`\n0 socket(...) = 3\n+.1~+.2 > S. 0:0(0) <...>")
	scripts, err := filepath.Glob("../testdata/*.pkt")
	require.NoError(f, err)
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(text))
	}
	f.Add("0 %{ assert (1 + 2) * 3 == 9 or not tcpi_rtt, \"x\" }%")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4000 {
			return
		}
		s, err := Parse("x.pkt", text)
		if err == nil {
			err = s.Run()
		}
		var fault *Error
		if err != nil {
			require.ErrorAs(t, err, &fault)
			require.Positive(t, fault.Line)
		}
	})
}
