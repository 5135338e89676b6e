//go:build linux

package interop_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// portLine matches a port in nmap's table.
var portLine = regexp.MustCompile(`(?m)^(\d+/(?:tcp|udp)) +(\S+)`)

// scan runs nmap and returns its output, and the ports with their states.
func (b *bed) scan(args ...string) (out string, ports map[string]string) {
	b.t.Helper()
	out = b.must(b.commandFor(2*patience, "nmap", append([]string{"-n", "-v", pick(b.family, "-v", "-6")}, args...)...))
	ports = map[string]string{}
	for _, p := range portLine.FindAllStringSubmatch(out, -1) {
		ports[p[1]] = p[2]
	}
	return out, ports
}

// nmap finds the right ports, address and distance, and no guessable sequence numbers. All packets
// that the node sends are valid, and the node still works afterwards.
func TestNmapScans(t *testing.T) { both(t, testNmapScans) }

func testNmapScans(t *testing.T, f family) {
	need(t, "nmap", "tshark", "socat")
	f.report(t, &row{peer: "nmap", scenario: "-sS -sU -O: ports, distance, then a transfer"})
	file := filepath.Join(f.captures(t, "nmap"), "ours.pcapng")
	b := newRow(t, f, file)
	b.web(80)
	b.echoUDP(53)

	out, ports := b.scan("-sS", "-sU", "-O", "--max-os-tries", "1", "--max-retries", "6",
		"-p", "T:79-82,U:53-55", f.ip(hostIP))
	assert.Equal(t, map[string]string{
		"79/tcp": "closed", "80/tcp": "open", "81/tcp": "closed", "82/tcp": "closed",
		"53/udp": "open", "54/udp": "closed", "55/udp": "closed",
	}, ports, out)
	assert.Contains(t, out, "Network Distance: 4 hops")
	if !f.v6 { // nmap does not report it
		assert.Regexp(t, `TCP Sequence Prediction: Difficulty=2\d\d \(Good luck!\)`, out)
	}
	b.stopCapture()
	b.ourFramesAreSound(file, 20)
	b.checkTransfer(1_000_000)
}

// nmap scans ten thousand ports of the host: all are closed except one.
func TestNmapFindsTheOpenPort(t *testing.T) { both(t, testNmapFindsTheOpenPort) }

func testNmapFindsTheOpenPort(t *testing.T, f family) {
	need(t, "nmap", "socat")
	f.report(t, &row{peer: "nmap", scenario: "-sS of 10000 ports, then a transfer"})
	b := newRow(t, f, "")
	b.web(80)
	out, ports := b.scan("-sS", "-T4", "-p", "1-10000", "--max-retries", "10", f.ip(hostIP))
	assert.Equal(t, map[string]string{"80/tcp": "open"}, ports, out)
	assert.Contains(t, out, "Not shown: 9999 closed tcp ports (reset)")
	require.NotContains(t, out, "filtered")
	b.checkTransfer(1_000_000)
}

// Scans with flags that no handshake has. RFC 9293 §3.10.7.1 and §3.10.7.2: a closed port answers
// with a reset. A listener answers an ACK with a reset, and ignores the other segments.
func TestNmapAndOddFlags(t *testing.T) { both(t, testNmapAndOddFlags) }

func testNmapAndOddFlags(t *testing.T, f family) {
	need(t, "nmap")
	f.report(t, &row{peer: "nmap", scenario: "-sN -sF -sX -sA -sW -sM and of protocols"})
	b := newRow(t, f, "")
	b.web(80)
	for flag, want := range map[string][2]string{
		"-sN": {"open|filtered", "closed"},
		"-sF": {"open|filtered", "closed"},
		"-sX": {"open|filtered", "closed"},
		"-sA": {"unfiltered", "unfiltered"},
		"-sW": {"closed", "closed"},
		"-sM": {"closed", "closed"},
		"-sT": {"open", "closed"},
	} {
		out, ports := b.scan(flag, "-p", "80-81", f.ip(hostIP))
		assert.Equal(t, map[string]string{"80/tcp": want[0], "81/tcp": want[1]}, ports, out)
	}
	icmp := pick(f, "1", "58")
	out, _ := b.scan("-sO", "-p", icmp+",6,17,99", f.ip(hostIP))
	for _, line := range []string{icmp + ` +open +(ipv6-)?icmp`, `6 +open +tcp`, `17 +open +udp`, `99 +closed`} {
		assert.Regexp(t, line, out)
	}
}
