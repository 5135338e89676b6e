//go:build linux

package interop_test

import (
	"bytes"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// linkMTU sets the MTU of the link between A and B. The next link keeps the default MTU.
func linkMTU(mtu int) string { return fmt.Sprintf("link if0 mtu %d\n", mtu) }

// learnMTU lets both ends of an IPv6 path lose one packet to learn the path's MTU, because routers
// do not fragment.
func (b *bed) learnMTU() {
	b.t.Helper()
	for range pick(b.family, 0, 3) {
		_ = b.command("ping", "-n", "-q", "-c", "1", "-W", "1", "-s", "1352", b.ip(hostIP)).Run()
	}
}

// summary matches ping's line with the numbers sent and received.
var summary = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// The kernel pings the node at the other end of the device, and the host behind two routers and a
// link of 576 bytes, with lengths up to the maximum. The kernel reassembles our fragments, and we
// reassemble the kernel's.
func TestPingOfEverySize(t *testing.T) { both(t, testPingOfEverySize) }

func testPingOfEverySize(t *testing.T, f family) {
	need(t, "ping", "tshark")
	small := pick(f, 576, 1280)
	f.report(t, &row{peer: "Linux ping", scenario: fmt.Sprintf("echoes of 0 to %d bytes, over %d", f.most(), small)})
	file := filepath.Join(f.captures(t, "ping of every size"), "ours.pcapng")
	b := newBed(t, f, 0, map[string]string{"C": file}, linkMTU(small))
	b.learnMTU()
	for _, target := range []string{gatewayIP, hostIP} {
		for _, n := range []int{0, 1, 56, 528, 529, 548, 1372, 1373, 1400, 9000, f.most()} {
			// One echo per ping, because after the first answer, ping waits for at most two round
			// trips.
			out := b.must(b.command("ping", "-n", "-q", "-M", "dont", "-c", "1", "-W", "10",
				"-s", strconv.Itoa(n), f.ip(target)))
			got := summary.FindStringSubmatch(out)
			require.Len(t, got, 3, out)
			assert.Equal(t, got[1], got[2], "%d bytes to %s: %s", n, target, out)
		}
	}
	testenv.Ask(t, b.c, control.PcapStop{})
	b.checkCapture(file, 100)
}

// checkCapture runs tshark on every packet of a capture: no packet is malformed, no checksum of IP,
// ICMP or UDP is wrong, and no fragments overlap or contradict each other.
func (b *bed) checkCapture(file string, fragments int) {
	b.t.Helper()
	icmp, ip, more, offset := "icmp", "ip", "ip.flags.mf", "ip.frag_offset"
	if b.v6 {
		icmp, ip, more, offset = "icmpv6", "ipv6", "ipv6.fraghdr.more", "ipv6.fraghdr.offset"
	}
	out := b.must(b.commandFor(2*patience, "tshark", "-r", file, "-n",
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields",
		"-E", "separator=|", "-e", "_ws.malformed", "-e", "ip.checksum.status",
		"-e", icmp+".checksum.status", "-e", "udp.checksum.status", "-e", ip+".fragment.error",
		"-e", ip+".fragment.overlap", "-e", ip+".fragment.toolongfragment", "-e", more,
		"-e", offset))
	seen := 0
	for line := range strings.Lines(out) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "|")
		require.Len(b.t, cells, 9, line)
		assert.Empty(b.t, cells[0], "malformed")
		for _, sum := range cells[1:4] {
			assert.NotContains(b.t, strings.Split(sum, ","), "0", "bad checksum: %s", line)
		}
		assert.Equal(b.t, []string{"", "", ""}, cells[4:7], "inconsistent fragments")
		if cells[7] == "1" || cells[7] == "True" || cells[8] != "0" && cells[8] != "" {
			seen++
		}
	}
	assert.GreaterOrEqual(b.t, seen, fragments, "number of fragments")
}

// Datagrams of any length cross a link with the minimum MTU, in both directions.
func TestLongDatagramsWithTheKernel(t *testing.T) { both(t, testLongDatagramsWithTheKernel) }

func testLongDatagramsWithTheKernel(t *testing.T, f family) {
	need(t, "tshark")
	small := pick(f, 68, 1280)
	f.report(t, &row{peer: "Linux", scenario: fmt.Sprintf("UDP of up to %d bytes, over %d", f.most(), small)})
	file := filepath.Join(f.captures(t, "long datagrams"), "ours.pcapng")
	b := newBed(t, f, 0, map[string]string{"C": file}, linkMTU(small))
	b.learnMTU()
	// so that routers also fragment the kernel's datagrams
	b.sysctl("net/ipv4/ip_no_pmtu_disc", "1")
	var kernel net.PacketConn
	require.NoError(t, b.inside(func() (err error) {
		kernel, err = net.ListenPacket("udp"+f.digit(), f.colon(kernelIP, 9353))
		return err
	}))
	defer kernel.Close()
	ours, err := b.c.Node.Packets.Listen(f.at("0.0.0.0", 9354))
	require.NoError(t, err)
	defer ours.Close()
	soon := time.Now().Add(patience)
	require.NoError(t, kernel.SetDeadline(soon))
	require.NoError(t, ours.SetDeadline(soon))
	p := make([]byte, 66_000)
	for _, n := range []int{1, 40, 41, 1373, 9000, f.most()} {
		text := bytes.Repeat([]byte{byte(n), byte(n >> 8), 7}, n/3+1)[:n]
		_, err := ours.WriteToAddrPort(text, f.at(kernelIP, 9353))
		require.NoError(t, err)
		got, from, err := kernel.ReadFrom(p)
		require.NoError(t, err, "%d bytes", n)
		require.True(t, bytes.Equal(text, p[:got]), "%d bytes", n)
		_, err = kernel.WriteTo(text, from)
		require.NoError(t, err)
		got, _, err = ours.ReadFromAddrPort(p)
		require.NoError(t, err, "%d bytes back", n)
		require.True(t, bytes.Equal(text, p[:got]), "%d bytes back", n)
	}
	testenv.Ask(t, b.c, control.PcapStop{})
	b.checkCapture(file, pick(f, 1000, 100))
}

// RFC 792: the kernel receives a time exceeded message for a datagram that was not completed.
// tshark finds the message and the echo in it valid.
func TestReassemblyTimeExceeded(t *testing.T) { both(t, testReassemblyTimeExceeded) }

func testReassemblyTimeExceeded(t *testing.T, f family) {
	need(t, "ping", "tshark")
	f.report(t, &row{peer: "Linux, tshark", scenario: "reassembly time exceeded"})
	b := newBed(t, f, 0, nil, linkMTU(pick(f, 576, 1280)))
	b.learnMTU()
	file := b.path("kernels.pcapng")
	s := b.sniff(file)
	b.set(pick(f, "ip.reassemblytimeout", "ip.reassemblytimeout6"), "100ms")
	b.setLoss(20)                                               // each echo has 5 fragments
	_ = b.command("ping", "-n", "-q", "-M", "dont", "-c", "40", // fails if all echoes are lost
		"-i", "0.02", "-W", "1", "-s", pick(f, "2400", "5000"), f.ip(hostIP)).Run()
	s.end()
	ip, icmp := pick(f, "ip", "ipv6"), pick(f, "icmp", "icmpv6")
	out := b.must(b.command("tshark", "-r", file, "-n", "-Y", icmp+".type == "+pick(f, "11", "3"),
		"-T", "fields", "-E", "separator=|", "-E", "occurrence=f", "-e", ip+".src", "-e", icmp+".code",
		"-e", icmp+".checksum.status", "-e", "_ws.malformed"))
	assert.Contains(t, out, f.ip(hostIP)+"|1|1|\n")
	for line := range strings.Lines(out) {
		assert.Equal(t, f.ip(hostIP)+"|1|1|\n", line)
	}
}
