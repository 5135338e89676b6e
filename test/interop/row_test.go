//go:build linux

package interop_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// rowFiles is a bed with three routers in a row between the kernel and a host:
//
//	kernel 10.8.0.2 -- tun -- A 10.0.0.1 -- 10.0.0.2 B 10.1.0.1 -- 10.1.0.2 D 10.2.0.1 -- C 10.2.0.2
var rowFiles = map[string]string{
	"A": `interface tun0 10.8.0.1/24 tun:` + device + ` kernel ` + kernelIP + ` routes 10.0.0.0/13
interface if0 10.0.0.1/24 127.0.0.1:5000
neighbor 10.0.0.2 at 127.0.0.1:5001 via if0
route 10.1.0.0/24 via 10.0.0.2
route 10.2.0.0/24 via 10.0.0.2
`,
	"B": `interface if0 10.0.0.2/24 127.0.0.1:5001
interface if1 10.1.0.1/24 127.0.0.1:5002
neighbor 10.0.0.1 at 127.0.0.1:5000 via if0
neighbor 10.1.0.2 at 127.0.0.1:5003 via if1
routing rip
route 10.8.0.0/24 via 10.0.0.1
route 10.2.0.0/24 via 10.1.0.2
`,
	"D": `interface if0 10.1.0.2/24 127.0.0.1:5003
interface if1 10.2.0.1/24 127.0.0.1:5004
neighbor 10.1.0.1 at 127.0.0.1:5002 via if0
neighbor 10.2.0.2 at 127.0.0.1:5005 via if1
routing rip
route 10.8.0.0/24 via 10.1.0.1
route 10.0.0.0/24 via 10.1.0.1
`,
	"C": `interface if0 10.2.0.2/24 127.0.0.1:5005
neighbor 10.2.0.1 at 127.0.0.1:5004 via if0
route 0.0.0.0/0 via 10.2.0.1
` + timing,
}

// rowHops are the addresses of a trace from the kernel to C, in order.
var rowHops = []string{"10.8.0.1", "10.0.0.2", "10.1.0.2", hostIP}

// newRow starts the four nodes; C captures to the file pcap, if given.
func newRow(t *testing.T, f family, pcap string) *bed {
	t.Helper()
	b := &bed{family: f, t: t}
	b.namespace()
	b.a = b.openText("A", rowFiles["A"], "")
	b.b = b.openText("B", rowFiles["B"], "")
	b.openText("D", rowFiles["D"], "")
	b.c = b.openText("C", rowFiles["C"], pcap)
	return b
}

// web serves C's page.
func (b *bed) web(port uint16) {
	b.t.Helper()
	testenv.Ask(b.t, b.c, control.Serve{Port: port})
}

// echoUDP makes C echo every datagram to a port.
func (b *bed) echoUDP(port int) {
	b.t.Helper()
	pc, err := b.c.Node.Packets.Listen(b.at("0.0.0.0", port))
	require.NoError(b.t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		echoAll(pc)
	}()
	b.t.Cleanup(func() {
		require.NoError(b.t, pc.Close())
		<-done
	})
}

func echoAll(pc *node.PacketConn) {
	p := make([]byte, 1<<16)
	for {
		n, from, err := pc.ReadFromAddrPort(p)
		if err != nil {
			return // the socket is closed
		}
		_, _ = pc.WriteToAddrPort(p[:n], from) // the source address may not exist
	}
}

// checkTransfer transfers a file from the kernel to C and back, to show that the node still works.
func (b *bed) checkTransfer(n int64) {
	b.t.Helper()
	b.fromSocat(9100, n)
	b.toSocat(9101, n)
}

// stopCapture flushes and closes C's capture.
func (b *bed) stopCapture() {
	b.t.Helper()
	testenv.Ask(b.t, b.c, control.PcapStop{})
}

// drops sums a node's drops by reason.
func (b *bed) drops(n *operator.Node, all map[string]uint64) {
	b.t.Helper()
	faces := testenv.Ask(b.t, n, control.Interfaces{})
	for i := range faces {
		for _, d := range faces[i].In.Drops {
			all[d.Reason] += d.Packets
		}
	}
}

// arrived waits until a node has received that many packets on its first interface.
func (b *bed) arrived(n *operator.Node, packets uint64) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		faces := testenv.Ask(b.t, n, control.Interfaces{})
		return faces[0].In.Packets >= packets
	}, 2*patience, 10*time.Millisecond, "%d packets", packets)
}

// memory returns the heap size of this process, which includes the nodes.
func memory() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// ourFramesAreSound runs tshark on the packets that C sent: none is malformed and no checksum is
// wrong. Packets quoted in ICMP errors are excluded, because C did not create them.
func (b *bed) ourFramesAreSound(file string, atLeast int) {
	b.t.Helper()
	icmp := pick(b.family, "icmp", "icmpv6")
	out := b.must(b.commandFor(4*patience, "tshark", "-r", file, "-n", "--disable-protocol", "dns",
		"-2", "-Y", "frame.packet_flags_direction == 2"+
			" && !("+icmp+".type in {"+pick(b.family, "3, 11, 12", "1..4")+"} && _ws.malformed)",
		"-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE",
		"-o", "tcp.check_checksum:TRUE", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f",
		"-e", "frame.number", "-e", "_ws.malformed", "-e", "ip.checksum.status",
		"-e", icmp+".checksum.status", "-e", "udp.checksum.status", "-e", "tcp.checksum.status",
		"-e", icmp+".type"))
	seen := 0
	for line := range strings.Lines(out) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "|")
		require.Len(b.t, cells, 7, line)
		seen++
		assert.Empty(b.t, cells[1], "malformed: %s", line)
		assert.Equal(b.t, pick(b.family, "1", ""), cells[2], "IP checksum: %s", line)
		assert.NotEqual(b.t, "0", cells[3], "ICMP checksum: %s", line)
		if cells[6] == "" {
			assert.NotEqual(b.t, "0", cells[4], "UDP checksum: %s", line)
			assert.NotEqual(b.t, "0", cells[5], "TCP checksum: %s", line)
		}
	}
	assert.GreaterOrEqual(b.t, seen, atLeast)
}
