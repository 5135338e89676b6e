package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// fault is a planted fault that no experiment detects, and the tests that do.
type fault struct {
	mutant
	folder string // folder of the tests
	tests  string // regular expression that matches the tests; all of them must fail
}

const (
	extension  = "internal/ip/extension.go"
	reassembly = "internal/ip/reassembly.go"
	icmpError  = "internal/icmp/error.go"
)

// faults6 are faults of IPv6.
var faults6 = []fault{
	{mutant{"hop-limit", "neighbor discovery accepts messages that a router forwarded", "internal/icmp/discovery.go", "if hopLimit != discoveryHopLimit {", "if false {", nil}, "internal/icmp", "TestRFC4861_6_1_IgnoredMessages"},
	{mutant{
		"overlap", "reassembly accepts overlapping fragments", reassembly,
		"case overlap:\n", "case 99:\n", nil,
	}, "internal/ip", "TestRFC5722_4_Overlaps6"},
	{mutant{"overlap-later", "fragments after an overlap begin a datagram", reassembly, "\tr.strip(d)\n\td.refused = reason\n", "\tr.release(d)\n", nil}, "internal/ip", "TestRFC5722_4_Overlaps6"},
	{mutant{"chain", "the first fragment may end in the headers", reassembly, "\t\treturn checkChain(h, payload)", "\t\treturn DropNone", nil}, "internal/ip", "TestRFC8200_4_5_InvalidFragments"},
	{mutant{"atomic", "an atomic fragment waits for others", extension, "\tif !h.IsFragment() {\n\t\treturn false\n\t}\n", "", nil}, "internal/ip", "TestRFC8200_4_5_FragmentHeader"},
	{mutant{"routing-0", "a routing header with segments left is skipped", extension, "if b[at+3] != 0 {", "if false {", nil}, "internal/ip", "TestRFC8200_4_4_RoutingHeader"},
	{mutant{"option-group", "an option with the bits 10 in a multicast packet is not reported", extension, "return Refusal{Drop: DropOption, Report: true, Code: ProblemOption, Pointer: at}", "return h.problem(DropOption, ProblemOption, at)", nil}, "internal/stack", "TestIPv6ErrorsOfARouter|TestRFC4443_2_4_ErrorsThatAreNotSent"},
	{mutant{"option-action", "an unknown option is skipped whatever its bits say", extension, "switch kind >> 6 {", "switch kind >> 8 {", nil}, "internal/ip", "TestRFC8200_4_2_UnknownOptions"},
	{mutant{"late-hop-by-hop", "the Hop-by-Hop Options header may be the second", extension, "if next == NextHopByHop {", "if false {", nil}, "internal/ip", "TestRFC8200_4_LaterHopByHop"},
	{mutant{"forward-link-local", "a router forwards packets to link-local addresses", "internal/stack/forward.go", "|| h.Is6() && h.Dst.IsLinkLocalUnicast() {", "{", nil}, "internal/stack", "TestScreenedIPv6Addresses"},
	{mutant{"error-about-error", "an ICMPv6 error is sent about an error", icmpError, "return t >= v6|128 && t != TypeRedirect6", "return t.Is6()", nil}, "internal/icmp", "TestRFC4443_2_4_MayReport"},
	{mutant{
		"error-about-group", "an error is sent about a multicast packet", icmpError,
		"isGroupOrBroadcast(dst) && !(src.Is6() && r.toGroup())",
		"isGroupOrBroadcast(dst) && src.Is4()", nil,
	}, "internal/stack", "TestRFC4443_2_4_ErrorsThatAreNotSent"},
	{mutant{"error-length", "an error is longer than 1280 bytes", icmpError, "room := max(0, min(size, MaxPacket6)-ip6HeaderLen-HeaderLen)", "room := size", nil}, "internal/icmp", "TestRFC4443_3_Errors"},
	{mutant{"ptb-1279", "a packet too big below 1280 lowers the path MTU", "internal/tcp/pathmtu.go", "return minPathMTU6, minPathMTU6, minPathMTU6", "return minPathMTU, minPathMTU6, minPathMTU6", nil}, "internal/tcp", "TestRFC8201_4_PacketTooBig"},
	{mutant{"ptb-raises", "a packet too big raises the path MTU", "internal/stack/pathmtu.go", "if ps.get(now, dst, mtu) < mtu {", "if false {", nil}, "internal/stack", "TestRFC8201_4_ReportsThatChangeNothing"},
	{mutant{"ptb-blind", "a packet too big about data that is not in flight lowers the path MTU", "internal/tcp/pathmtu.go", "w < c.snd.Una || w >= c.snd.Nxt || mtu < least", "mtu < least", nil}, "internal/tcp", "TestRFC8201_4_PacketTooBig"},
	{mutant{"label-constant", "all flows have the same label", "internal/ip/flowlabel.go", "label := uint32(h>>32) & flowLabelMask", "label := uint32(h>>63) | 7", nil}, "internal/ip", "TestRFC6437_3_FlowLabels"},
	{mutant{"label-changes", "a connection's label changes with each packet", "internal/stack/pathmtu.go", "return tx.labels.Of(", "tx.localAt++\n\treturn uint32(tx.localAt)&0xfffff | 1 | tx.labels.Of(", nil}, "internal/stack", "TestFlowLabelsOfConnections"},
	{mutant{"pseudo-header", "the pseudo-header has a length of 16 bits in the wrong place", "internal/checksum/checksum.go", "s := uint64(bits.ReverseBytes32(uint32(length))) + uint64(protocol)<<24", "s := uint64(uint32(length)) + uint64(protocol)<<24", nil}, "internal/checksum", "TestRFC8200_8_1_PseudoHeader"},
	{mutant{"udp-zero", "a datagram without a checksum is accepted", "internal/udp/header.go", "return !src.Is6()", "return true", nil}, "internal/stack", "TestRIPngRefuses"},
	{mutant{"duplicate-ignored", "another node's address is used", "internal/icmp/neighbor.go", "i.duplicate(now, a) // RFC 4862 §5.4.4", "_ = now", nil}, "internal/icmp", "TestRFC4862_5_4_Duplicates"},
	{mutant{"two-hours", "an advertisement ends an address at once", "internal/icmp/address.go", "twoHours             = 2 * time.Hour", "twoHours             = 0", nil}, "internal/icmp", "TestRFC4862_5_5_3_TwoHours"},
	{mutant{"ripng-hop-limit", "RIPng accepts messages from other links", "internal/stack/rip.go", "port == rp.port && h.TTL != rp.ttl", "port == 0 && h.TTL != rp.ttl", nil}, "internal/stack", "TestRIPngRefuses"},
	{mutant{"mld-length", "an MLD query of 26 bytes is answered", "internal/icmp/listener.go", "len(m.Body) < 20 && len(m.Body) != 16", "len(m.Body) < 16", nil}, "internal/icmp", "TestRFC3810_6_2_Queries"},
}

// Every fault's edit applies to the current file. The long variant plants each and runs the tests
// that must fail.
func TestFaultsOfIPv6(t *testing.T) {
	t.Chdir("../..")
	names := map[string]bool{}
	for i := range faults6 {
		f := &faults6[i]
		assert.False(t, names[f.name], "%s: duplicate name", f.name)
		names[f.name] = true
		overlay, err := f.overlay(t.TempDir())
		require.NoError(t, err, f.name)
		if !testenv.Long() {
			continue
		}
		out, err := exec.CommandContext(context.Background(), "go", "test", "-count=1", "-vet=off",
			"-overlay", overlay, "-run", "^("+f.tests+")$", "./"+f.folder).CombinedOutput()
		assert.Error(t, err, "%s: %s", f.name, f.about)
		for name := range strings.SplitSeq(f.tests, "|") {
			assert.Contains(t, string(out), "--- FAIL: "+name, "%s: %s", f.name, f.about)
		}
	}
}
