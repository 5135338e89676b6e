package capture_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/capture"
)

func addr6(text string) []byte { return netip.MustParseAddr(text).AsSlice() }

func word(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// segment6 is like segment, for IPv6.
func segment6(tb testing.TB, tcp layers.TCP, n int) []byte {
	tb.Helper()
	tcp.SrcPort, tcp.DstPort = 33000, 80
	return build(tb, header6(6), &tcp, gopacket.Payload(make([]byte, n)))
}

// lines6 has packets with the lines that describe them.
func lines6(tb testing.TB) map[string]struct{ packet, line string } {
	tb.Helper()
	syn := segment6(tb, layers.TCP{SYN: true, Seq: 7, Window: 512}, 0)
	udp := build(tb, header6(17), &layers.UDP{SrcPort: 4000, DstPort: 5300}, gopacket.Payload("query"))
	body, target := udp[40:], addr6("2001:db8::9")
	hop := []byte{17, 0, 5, 2, 0, 0, 1, 0}
	fragment := func(next, offset, more byte) []byte { return []byte{next, 0, 0, offset | more, 0, 1, 0, 2} }
	record := func(kind byte, sources ...byte) []byte {
		b := append([]byte{kind, 0, 0, byte(len(sources) / 16)}, addr6("ff02::fb")...)
		return append(b, sources...)
	}
	traffic := bytes.Clone(udp)
	traffic[0], traffic[1] = 0x6b, traffic[1]|0x80
	const at = "(flowlabel 0x12345, hlim 64) 2001:db8::1 > 2001:db8:1::2: "
	const ports = "(flowlabel 0x12345, hlim 64) 2001:db8::1.4000 > 2001:db8:1::2.5300: UDP, length 5"
	all := map[string]struct{ packet, line string }{}
	add := func(name string, packet []byte, line string) {
		all[name] = struct{ packet, line string }{string(packet), "IP6 " + line}
	}
	add("tcp", syn, "(flowlabel 0x12345, hlim 64) 2001:db8::1.33000 > 2001:db8:1::2.80: "+
		"Flags [S], seq 7, win 512, length 0")
	add("udp", udp, ports)
	add("class", traffic, "(class 0xb8, "+ports[1:])
	add("hop-by-hop", chained(tb, 0, hop, body), strings.Replace(ports, "64)", "64, HBH)", 1))
	add("each header", chained(tb, 0, []byte{60, 0, 1, 4, 0, 0, 0, 0}, []byte{43, 0, 1, 4, 0, 0, 0, 0},
		[]byte{17, 0, 4, 0, 0, 0, 0, 0}, body), strings.Replace(ports, "64)", "64, HBH, RT, DSTOPT)", 1))
	add("first fragment", chained(tb, 44, fragment(17, 0, 1), body),
		strings.Replace(ports, "64)", "64, frag)", 1)+" [fragment id 65538 offset 0+]")
	add("last fragment", chained(tb, 44, fragment(58, 16, 0), body),
		strings.Replace(at, "64)", "64, frag)", 1)+"icmp6, length 13 [fragment id 65538 offset 16]")
	add("header cut", chained(tb, 60, []byte{17, 9, 0, 0, 0, 0, 0, 0}), at+"[|DSTOPT]")
	add("nine headers", chained(tb, 60, bytes.Repeat([]byte{60, 0, 1, 4, 0, 0, 0, 0}, 9)),
		strings.Replace(at, "64)", "64, DSTOPT)", 1)+"[|DSTOPT]")
	add("no next header", chained(tb, 59, nil), at+"proto 59, length 0")
	add("headers beyond the payload", append(chained(tb, 0, hop[:4]), 0, 0, 0, 0),
		strings.Replace(at, "64)", "64, HBH)", 1)+"bad payload length 4")
	add("echo", icmp6(tb, 128, 0, []byte{0, 7, 0, 1}, []byte("hello")),
		at+"ICMP6, echo request, id 7, seq 1, length 13")
	add("echo reply", icmp6(tb, 129, 0, []byte{0, 7, 0, 1}), at+"ICMP6, echo reply, id 7, seq 1, length 8")
	for code, text := range []string{
		"unreachable route 2001:db8:1::2", "unreachable prohibited 2001:db8:1::2",
		"beyond scope 2001:db8:1::2", "unreachable address 2001:db8:1::2",
		"unreachable port, 2001:db8:1::2 udp port 5300", "source address failed policy 2001:db8:1::2",
		"reject route 2001:db8:1::2", "unknown code (7) 2001:db8:1::2",
	} {
		add(text, icmp6(tb, 1, uint8(code), word(0), udp),
			at+"ICMP6, destination unreachable, "+text+", length 61")
	}
	add("unreachable, no quote", icmp6(tb, 1, 4, word(0), udp[:39]),
		at+"ICMP6, destination unreachable, unreachable port, length 47")
	add("too big", icmp6(tb, 2, 0, word(1280), udp), at+"ICMP6, packet too big, mtu 1280, length 61")
	add("exceeded", icmp6(tb, 3, 0, word(0), udp), at+"ICMP6, time exceeded in-transit for 2001:db8:1::2, length 61")
	add("reassembly", icmp6(tb, 3, 1, word(0), udp), at+"ICMP6, time exceeded in-transit (reassembly), length 61")
	add("problem", icmp6(tb, 4, 1, word(40), udp),
		at+"ICMP6, parameter problem, next header - octet 40, length 61")
	add("query", icmp6(tb, 130, 0, word(1000<<16), target),
		at+"ICMP6, multicast listener query max resp delay: 1000 addr: 2001:db8::9, length 24")
	add("report", icmp6(tb, 131, 0, word(0), target),
		at+"ICMP6, multicast listener report max resp delay: 0 addr: 2001:db8::9, length 24")
	add("done", icmp6(tb, 132, 0, word(0), target),
		at+"ICMP6, multicast listener done max resp delay: 0 addr: 2001:db8::9, length 24")
	add("router solicitation", icmp6(tb, 133, 0, word(0)), at+"ICMP6, router solicitation, length 8")
	add("router advertisement", icmp6(tb, 134, 0, word(0x40000708), word(0), word(0)),
		at+"ICMP6, router advertisement, hop limit 64, router lifetime 1800s, length 16")
	add("solicitation", icmp6(tb, 135, 0, word(0), target),
		at+"ICMP6, neighbor solicitation, who has 2001:db8::9, length 24")
	add("advertisement", icmp6(tb, 136, 0, word(0), target),
		at+"ICMP6, neighbor advertisement, tgt is 2001:db8::9, length 24")
	add("short advertisement", icmp6(tb, 136, 0, word(0), target[:15]),
		at+"ICMP6, neighbor advertisement, tgt is [|icmp6], length 23")
	add("redirect", icmp6(tb, 137, 0, word(0), target, addr6("2001:db8:2::1")),
		at+"ICMP6, redirect, 2001:db8:2::1 to 2001:db8::9, length 40")
	add("groups", icmp6(tb, 143, 0, word(2), record(4), record(6, target...)),
		at+"ICMP6, multicast listener report v2, 2 group record(s) [gaddr ff02::fb to_ex, 0 source(s)]"+
			" [gaddr ff02::fb block, 1 source(s)], length 64")
	add("group record of unknown type", icmp6(tb, 143, 0, word(2), record(0)),
		at+"ICMP6, multicast listener report v2, 2 group record(s) "+
			"[gaddr ff02::fb unknown code (-1), 0 source(s)] [|icmp6], length 28")
	add("five groups", icmp6(tb, 143, 0, word(5), bytes.Repeat(record(1), 5)),
		at+"ICMP6, multicast listener report v2, 5 group record(s)"+
			strings.Repeat(" [gaddr ff02::fb is_in, 0 source(s)]", 4)+" ..., length 108")
	add("unknown message", icmp6(tb, 200, 3, word(0)), at+"ICMP6, unknown icmp6 type (200), length 8")
	damaged := icmp6(tb, 128, 0, []byte{0, 7, 0, 1})
	damaged[47]++
	add("checksum", damaged, at+"ICMP6, echo request, id 7, seq 2, length 8 [bad checksum]")
	return all
}

func TestDescribeIPv6(t *testing.T) {
	for name, tt := range lines6(t) {
		assert.Equal(t, tt.line, describe([]byte(tt.packet)), name)
		for cut := range len(tt.packet) {
			describe([]byte(tt.packet[:cut]))
		}
	}
	assert.Equal(t, "IP [|ip], length 39", describe(segment6(t, layers.TCP{}, 0)[:39]))
	cut := icmp6(t, 128, 0, word(0))[:47]
	assert.Equal(t, "IP6 (flowlabel 0x12345, hlim 64) 2001:db8::1 > 2001:db8:1::2: [|icmp6]", describe(cut))
}

// TestTcpdumpReadsIPv6 compares the lines with tcpdump's. tcpdump prints the part in parentheses
// only with -v. The test also counts the packets that tcpdump's filters accept.
func TestTcpdumpReadsIPv6(t *testing.T) {
	path, err := exec.LookPath("tcpdump")
	if err != nil {
		t.Skip("skip: needs tcpdump")
	}
	same := strings.Fields("udp echo too_big exceeded reassembly problem solicitation " +
		"advertisement redirect router_solicitation")
	var file bytes.Buffer
	w, err := capture.New(&file, interfaces, 0)
	require.NoError(t, err)
	var want []string
	all := lines6(t)
	for i, name := range same {
		tt := all[strings.ReplaceAll(name, "_", " ")]
		require.NoError(t, w.Packet(noon, i%2, capture.Inbound, "", []byte(tt.packet)))
		before, after, _ := strings.Cut(tt.line, "(")
		_, after, _ = strings.Cut(after, ") ")
		want = append(want, before+after)
	}
	require.NoError(t, w.Packet(noon, 1, capture.Inbound, "", segment(t, layers.TCP{}, 0)))
	require.NoError(t, w.Flush())
	read := func(filter ...string) []string {
		cmd := exec.Command(path, append([]string{"-n", "-t", "-r", "-"}, filter...)...)
		cmd.Stdin = bytes.NewReader(file.Bytes())
		out, err := cmd.Output()
		require.NoError(t, err)
		return strings.Split(strings.TrimSpace(string(out)), "\n")
	}
	got := read("ip6")
	require.Len(t, got, len(want))
	for i, line := range want {
		assert.Equal(t, line, got[i])
	}
	assert.Len(t, read("ip"), 1)
	assert.Len(t, read("icmp6"), len(want)-1)
	assert.Len(t, read("udp port 5300"), 1)
}

func TestIPv6Filters(t *testing.T) {
	hop := []byte{6, 0, 1, 4, 0, 0, 0, 0}
	syn := segment6(t, layers.TCP{SYN: true, Options: options()}, 0)
	packets := map[string][]byte{
		"syn": syn, "chain": chained(t, 0, hop, syn[40:]),
		"dns":   build(t, header6(17), &layers.UDP{SrcPort: 4000, DstPort: 53}),
		"ping":  icmp6(t, 128, 0, word(0)),
		"first": chained(t, 44, []byte{17, 0, 0, 1, 0, 0, 0, 1}, make([]byte, 8)),
		"later": chained(t, 44, []byte{17, 0, 0, 8, 0, 0, 0, 1}, make([]byte, 8)),
		"short": chained(t, 0, []byte{6, 0, 1, 4}), "old": segment(t, layers.TCP{SYN: true}, 0),
		"oldudp": build(t, header(17), &layers.UDP{SrcPort: 4000, DstPort: 53}),
	}
	const six = "chain dns first later ping short syn"
	for _, tt := range []struct{ filter, want string }{
		{"ip6", six},
		{"ip", "old oldudp"},
		{"tcp", "chain old syn"},
		{"ip6 and tcp", "chain syn"},
		{"udp", "dns first later oldudp"},
		{"icmp6", "ping"},
		{"icmp", ""},
		{"proto 58", "ping"},
		{"ip proto 58", ""},
		{"ip6 proto icmp6", "ping"},
		{`ip6 proto \udp`, "dns first later"},
		{"proto 0", "short"},
		{"test", ""},
		{"host 2001:db8::1", six},
		{"src host 2001:db8:1::2", ""},
		{"dst 2001:db8:1:0:0:0:0:2 and icmp6", "ping"},
		{"ip6 host 2001:db8::1 and udp", "dns first later"},
		{"net 2001:db8::/32 and tcp", "chain syn"},
		{"src net 2001:db8:1::/48", ""},
		{"net ::/0 and tcp", "chain syn"},
		{"net 0.0.0.0/0", "old oldudp"},
		{"net 2001:db8::1 and icmp6", "ping"},
		{"port 53", "dns oldudp"},
		{"ip6 port 53 or 80", "chain dns syn"},
		{"ip port 53 or 80", "old oldudp"},
		{"port 53 or 2001:db8::1 and syn", "chain syn"},
		{"udp port 0", "first"},
		{"syn", "chain old syn"},
		{"tcp[tcpflags] == tcp-syn and ip6", "chain syn"},
		{"not ip6", "old oldudp"},
	} {
		f, err := capture.ParseFilter(tt.filter)
		require.NoError(t, err, tt.filter)
		var passed []string
		for name := range strings.FieldsSeq("chain dns first later old oldudp ping short syn") {
			var facts capture.Facts
			facts.Parse(packets[name][:min(len(packets[name]), capture.HeaderBytes)])
			if f.Match(&facts) {
				passed = append(passed, name)
			}
		}
		assert.Equal(t, tt.want, strings.Join(passed, " "), tt.filter)
	}
	for filter, what := range map[string]string{
		"host 2001:db8::1%if0":        `unexpected "%"`,
		"ip6 host 10.0.0.1":           "expected an IPv6 address",
		"net 2001:db8::/129":          "expected a network",
		"net 2001:db8::1/64":          "has bits beyond the prefix length",
		"ip net 2001:db8::/32":        "expected a network",
		"net 2001:db8:: mask 255.0.0": "expected a mask",
		"net 0.0.0.0 mask 255.0.1.0":  "expected a mask",
	} {
		_, err := capture.ParseFilter(filter)
		assert.ErrorContains(t, err, what, filter)
	}
}

// TestFollowIPv6 checks that flows have the zones of link-local addresses, and that segments of
// both families are interpreted in the same way.
func TestFollowIPv6(t *testing.T) {
	h := header6(6)
	h.SrcIP, h.TrafficClass = addr6("fe80::1"), 0xb9
	packet := build(t, h, &layers.TCP{SrcPort: 1, DstPort: 2, SYN: true, Options: options()},
		gopacket.Payload(make([]byte, 50)))
	facts := capture.Facts{Iface: "if0"}
	facts.Parse(packet)
	flow, ok := facts.Flow(true)
	require.True(t, ok)
	assert.Equal(t, capture.Flow{
		Local: netip.MustParseAddrPort("[fe80::1%if0]:1"), Remote: netip.MustParseAddrPort("[2001:db8:1::2]:2"),
	}, flow)
	back, _ := facts.Flow(false)
	assert.Equal(t, capture.Flow{Local: flow.Remote, Remote: flow.Local}, back)
	assert.Equal(t, packet[40:], facts.Segment(append(packet, 0)))
	var f capture.Follower
	s, ok := f.Follow(packet[:capture.HeaderBytes-20], &facts, true, false)
	require.True(t, ok)
	assert.Equal(t, []any{"S", 50, 1360, 7, uint8(1)}, []any{s.Flags, s.Length, s.MSS, s.Scale, s.ECN})

	facts.Parse(chained(t, 44, []byte{6, 0, 0, 1, 0, 0, 0, 1}, packet[40:]))
	_, ok = facts.Flow(true)
	assert.True(t, ok)
	assert.Nil(t, facts.Segment(packet), "a fragment")
}
