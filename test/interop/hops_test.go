//go:build linux

package interop_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The kernel pings through three routers, with lengths up to the maximum.
func TestPingBehindThreeRouters(t *testing.T) { both(t, testPingBehindThreeRouters) }

func testPingBehindThreeRouters(t *testing.T, f family) {
	need(t, "ping", "tshark", "tcpdump")
	f.report(t, &row{peer: "Linux ping", scenario: fmt.Sprintf("0 to %d bytes, through three routers", f.most())})
	file := filepath.Join(f.captures(t, "ping through three"), "ours.pcapng")
	b := newRow(t, f, file)
	for _, n := range []int{0, 1, 8, 56, 1371, 1372, 1373, 2744, 2745, 9000, 32768, f.most() - 1, f.most()} {
		// One echo per ping, because after the first answer, ping waits for at most two round
		// trips.
		out := b.must(b.command("ping", "-n", "-M", "dont", "-c", "1", "-W", "10",
			"-s", strconv.Itoa(n), f.ip(hostIP)))
		got := summary.FindStringSubmatch(out)
		require.Len(t, got, 3, out)
		assert.Equal(t, []string{"1", "1"}, got[1:], "%d bytes: %s", n, out)
		assert.Contains(t, out, "ttl=61", "64 less three routers")
	}
	b.stopCapture()
	b.checkCapture(file, 80)
	b.checkWithTcpdump(file)
}

// checkWithTcpdump reads a capture with tcpdump, which shares no code with Wireshark, and checks
// that tcpdump reports no problem.
func (b *bed) checkWithTcpdump(file string) {
	b.t.Helper()
	out := b.must(b.command("tcpdump", "-nn", "-vv", "-r", file))
	assert.Greater(b.t, strings.Count(out, "\n"), 10)
	for _, complaint := range []string{
		"bad cksum", "incorrect", "wrong", "truncated", "bad hlen", "bad-len", "invalid", "[|",
	} {
		assert.NotContains(b.t, out, complaint)
	}
}

// RFC 791: routers process the IP options that the kernel's ping sends.
func TestPingAndItsOptions(t *testing.T) { both(t, testPingAndItsOptions) }

func testPingAndItsOptions(t *testing.T, f family) {
	need(t, "ping")
	f.report(t, &row{peer: "Linux ping", scenario: pick(f, "record route, timestamps, each TTL, DF", "each hop limit, an MTU that is too small")})
	b := newRow(t, f, "")
	ping := func(args ...string) string {
		out, _ := b.command("ping", append([]string{"-n", "-c", "1", "-W", "10"}, args...)...).
			CombinedOutput() // fails if it receives an error
		return string(out)
	}
	if !f.v6 {
		b.checkOptions(ping)
	}
	for i, hop := range rowHops[:3] {
		out := ping("-t", strconv.Itoa(i+1), f.ip(hostIP))
		assert.Contains(t, out, "From "+f.ip(hop)+" icmp_seq=1 "+
			pick(f, "Time to live exceeded", "Time exceeded: Hop limit"))
	}
	assert.Contains(t, ping("-t", "4", f.ip(hostIP)), "1 received")
	out := ping("-M", "do", "-s", pick(f, "1373", "1353"), f.ip(hostIP))
	assert.Regexp(t, "mtu[=:] ?1400", out)
	assert.Contains(t, ping(f.ip("10.7.0.1")), "From "+f.ip(gatewayIP)+
		pick(f, " icmp_seq=1 Destination Net Unreachable", " icmp_seq=1 Destination unreachable: No route"))
}

// checkOptions checks that each router and the host process the options of IPv4.
func (b *bed) checkOptions(ping func(args ...string) string) {
	b.t.Helper()
	out := ping("-R", b.ip(hostIP))
	_, record, ok := strings.Cut(out, "RR:")
	require.True(b.t, ok, out)
	record, _, _ = strings.Cut(record, "\n\n")
	assert.Equal(b.t, []string{
		b.ip(kernelIP), "10.0.0.1", "10.1.0.1", "10.2.0.1", b.ip(hostIP), b.ip(hostIP), "10.1.0.2", "10.0.0.2", "10.8.0.1",
	}, strings.Fields(record))

	out = ping("-T", "tsandaddr", b.ip(hostIP))
	for _, hop := range []string{"10.0.0.1", "10.1.0.1", "10.2.0.1"} {
		assert.Contains(b.t, out, hop, "routers that added a timestamp")
	}
	assert.Contains(b.t, out, "Unrecorded hops: 6")
}

// hop matches a line of a trace: number, router, and the rest.
var hop = regexp.MustCompile(`(?m)^ *(\d+)(?:\.\|--)? +([0-9a-f.:]+) +(.*)$`)

// assertHops checks that a trace lists the routers in order, and that no answer was lost.
func assertHops(t *testing.T, f family, out, without string) {
	t.Helper()
	found := hop.FindAllStringSubmatch(out, -1)
	require.Len(t, found, len(rowHops), out)
	for i, want := range rowHops {
		assert.Equal(t, strconv.Itoa(i+1), found[i][1], out)
		assert.Equal(t, f.ip(want), found[i][2], out)
		assert.NotRegexp(t, without, found[i][3], out)
	}
}

// traceroute finds the routers with every kind of probe.
func TestTracerouteThroughThreeRouters(t *testing.T) { both(t, testTracerouteThroughThreeRouters) }

func testTracerouteThroughThreeRouters(t *testing.T, f family) {
	need(t, "traceroute")
	b := newRow(t, f, "")
	b.web(80)
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"UDP", nil},
		{"ICMP", []string{"-I"}},
		{"TCP, an open port", []string{"-T", "-p", "80"}},
		{"TCP, a closed port", []string{"-T", "-p", "81"}},
		{"UDP, all to one port", []string{"-U", "-p", "33434"}},
		{"UDP, finding the MTU", []string{"-F", "--mtu"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f.report(t, &row{peer: "traceroute", scenario: "through three routers, " + tt.name})
			args := append([]string{"-n", "-w", "10"}, tt.args...)
			out := b.must(b.command("traceroute", append(args, f.ip(hostIP))...))
			assertHops(t, f, out, `\*|!`)
			if tt.name == "UDP, finding the MTU" {
				assert.Contains(t, out, "F=1400")
			}
		})
	}
}

// mtr finds the routers with every kind of probe, and no hop loses a packet.
func TestMtrThroughThreeRouters(t *testing.T) { both(t, testMtrThroughThreeRouters) }

func testMtrThroughThreeRouters(t *testing.T, f family) {
	need(t, "mtr")
	b := newRow(t, f, "")
	b.web(80)
	for _, tt := range []struct {
		name string
		args []string
	}{
		{"ICMP", nil},
		{"UDP", []string{"--udp"}},
		{"TCP", []string{"--tcp", "-P", "80"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // the test mostly waits
			f.report(t, &row{peer: "mtr", scenario: "through three routers, " + tt.name})
			args := append([]string{"-n", "-r", "-c", "3", "-i", "0.2", "-G", "2"}, tt.args...)
			out := b.must(b.command("mtr", append(args, f.ip(hostIP))...))
			assertHops(t, f, out, `^([1-9]|[1-9]\d)\.`)
		})
	}
}
