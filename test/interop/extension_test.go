//go:build linux

package interop_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// RFC 8200 §4: C answers echoes and datagrams with hop-by-hop and destination options, whole and in
// fragments. tshark reassembles the answers, and its expert information has no warning about these
// packets or about a transfer.
func TestTsharkAndExtensionHeaders(t *testing.T) {
	need(t, "tshark", "socat")
	with, f := python(t), family{v6: true}
	f.report(t, &row{peer: "scapy, tshark", scenario: "extension headers, fragments, a transfer: no warning"})
	file := filepath.Join(f.captures(t, "extensions"), "ours.pcapng")
	b := newRow(t, f, file)
	b.echoUDP(7)
	sent := strings.TrimSpace(b.must(b.command(with, "testdata/extensions.py", device,
		f.ip(kernelIP), f.ip(hostIP))))
	require.Equal(t, "8", sent)
	b.arrived(b.c, 8+8*3) // whole packets and fragments
	b.checkTransfer(1_000_000)
	b.stopCapture()
	count := func(filter string) int {
		out := b.must(b.command("tshark", "-r", file, "-n", "-Y", filter))
		return strings.Count(out, "\n")
	}
	assert.Equal(t, 8, count("icmpv6.type == 129 && frame.packet_flags_direction == 2"), "echo replies")
	assert.Equal(t, 8, count("udp.srcport == 7 && frame.packet_flags_direction == 2"), "datagrams")
	said := b.must(b.commandFor(2*patience, "tshark", "-r", file, "-n", "-q", "-o",
		"tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-z",
		"expert,warn,!(tcp.flags.reset == 1)")) // the kernel refuses C until socat listens
	assert.Empty(t, strings.TrimSpace(said))
}
