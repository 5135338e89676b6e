//go:build linux

package interop_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// synBacklog is the limit of a listener's half-open connections: tcp.Limits.SynBacklog.
const synBacklog = 1024

// hpingLine matches the last line of hping3.
var hpingLine = regexp.MustCompile(`(\d+) packets transmitted, (\d+) packets received`)

// hping runs hping3 and returns the numbers of packets sent and received.
func (b *bed) hping(args ...string) (sent, got int) {
	b.t.Helper()
	p := b.start(b.command("hping3", append(append([]string{"-n", "-q"}, args...), b.ip(hostIP))...))
	<-p.done // fails if no packet comes back
	line := hpingLine.FindStringSubmatch(p.out.String())
	require.Len(b.t, line, 3, p.out.String())
	sent, err := strconv.Atoi(line[1])
	require.NoError(b.t, err)
	got, err = strconv.Atoi(line[2])
	require.NoError(b.t, err)
	return sent, got
}

// oddPackets are packets that hping3 sends to a port, and the number of answers to expect for forty
// of them.
var oddPackets = []struct {
	name, args string
	answers    int
}{
	{"xmas", "-F -P -U -p 80", 0},
	{"xmas, closed", "-F -P -U -p 81", 40},
	{"null", "-p 80", 0},
	{"null, closed", "-p 81", 40},
	{"fin", "-F -p 80", 0},
	{"fin, closed", "-F -p 81", 40},
	{"ack", "-A -p 80", 40},
	{"rst, closed", "-R -p 81", 0},
	{"syn+fin", "-S -F -p 80", 0},
	{"syn+rst", "-S -R -p 80", 0},
	{"all flags", "-F -S -R -P -A -U -X -Y -p 80", 0},
	{"bad checksum", "-S -b -p 80", 0},
	{"header longer than the packet", "-S -O 15 -p 80", 0},
	{"header shorter than a header", "-S -O 1 -p 80", 0},
	{"fragments of 16 bytes", "-S -f -d 200 -p 80", 0},
	{"no last fragment", "-S -x -d 200 -p 80", 0},
	{"no first fragment", "-S -g 1000 -d 200 -p 80", 0},
	{"land", "-S -k -s 80 -p 80 -a " + hostIP, 40}, // the answer goes to the host itself
	{"from a broadcast", "-S -p 80 -a 255.255.255.255", 0},
	{"from a group", "-S -p 80 -a 224.0.0.9", 0},
	{"from loopback", "-S -p 80 -a 127.0.0.1", 0},
	{"datagrams in fragments, closed", "-2 -p 54 -d 3000", 40},
	{"long echoes", "-1 -d 20000", 40},
	{"timestamps", "-1 -C 13", 40},
}

// The node gets flags, fragments and addresses that no honest program sends. It answers where the
// RFCs require that, drops the rest and counts the reasons. Afterwards a file can still be
// transferred.
func TestHpingOddPackets(t *testing.T) {
	var f family // hping3 has only IPv4
	need(t, "hping3", "socat", "tshark")
	f.report(t, &row{peer: "hping3", scenario: "odd flags, fragments, sources; then a transfer"})
	const workers = 5 // hping3 counts any answer as its own
	var beds [workers]*bed
	var files [workers]string
	for i := range beds {
		files[i] = filepath.Join(f.captures(t, fmt.Sprintf("hping %d", i)), "ours.pcapng")
		beds[i] = newRow(t, f, files[i])
		beds[i].listen(80)
	}
	var all sync.WaitGroup
	for w, b := range beds {
		all.Go(func() {
			for i := w; i < len(oddPackets); i += workers {
				tt := oddPackets[i]
				args := append([]string{"-c", "40", "-i", "u5000"}, strings.Fields(tt.args)...)
				sent, got := b.hping(args...)
				assert.Equal(t, []int{40, tt.answers}, []int{sent, got}, tt.name)
			}
		})
	}
	all.Wait()
	first, host := map[string]uint64{}, map[string]uint64{}
	for i, b := range beds {
		b.drops(b.a, first)
		b.drops(b.c, host)
		b.checkTransfer(100_000)
		b.stopCapture()
		b.ourFramesAreSound(files[i], 40)
	}
	assert.Equal(t, map[string]uint64{"martian address": 3 * 40}, first)
	for reason, n := range map[string]uint64{
		"bad tcp checksum": 40, "bad tcp header": 2 * 40, "tiny fragment": 40,
		"own address as source": 40,
	} {
		assert.Equal(t, n, host[reason], "%s: %v", reason, host)
	}
}

// oddPackets6 are the kinds of packets of testdata/odd.py that each get an answer: those of
// oddPackets that exist in IPv6, and others.
var oddPackets6 = []string{
	"xmas, closed", "null, closed", "fin, closed", "ack", "atomic fragment, closed",
	"first fragment without the header", "fragment not a multiple of 8", "fragment beyond 65535",
	"datagrams in fragments, closed", "long echoes", "option to skip", "option to report",
	"routing header of type 0", "routing header that has ended", "hop-by-hop options in the middle",
	"jumbogram", "unknown header", "from its link",
}

// The nodes get flags, fragments, addresses, extension headers and neighbor discovery messages that
// no honest program sends. They answer where the RFCs require that, drop the rest and count the
// reasons. Afterwards a file can still be transferred.
func TestScapyOddPackets(t *testing.T) {
	need(t, "socat", "tshark")
	with, f := python(t), family{v6: true}
	f.report(t, &row{peer: "scapy", scenario: "odd flags, fragments, headers; then a transfer"})
	file := filepath.Join(f.captures(t, "odd"), "ours.pcapng")
	b := newRow(t, f, file)
	b.listen(80)
	out := b.must(b.commandFor(4*patience, with, "testdata/odd.py", device, f.ip(kernelIP),
		f.ip(gatewayIP), f.ip(hostIP)))
	var got map[string]int
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	for name, n := range got {
		want := 0
		if slices.Contains(oddPackets6, name) {
			want = 40
		}
		assert.Equal(t, want, n, name)
	}
	for _, name := range oddPackets6 {
		assert.Contains(t, got, name)
	}
	first, host := map[string]uint64{}, map[string]uint64{}
	b.drops(b.a, first)
	b.drops(b.c, host)
	delete(first, "not in group") // reports from the kernel
	delete(host, "not in group")  // RIPng messages from the last router
	assert.Equal(t, map[string]uint64{
		"martian address": 5 * 40, "beyond scope of source": 40, "jumbogram": 40,
		"neighbor discovery from off-link": 2 * 40, "neighbor discovery in fragments": 40,
		"mld without router alert": 40,
	}, first)
	assert.Equal(t, map[string]uint64{
		"bad tcp checksum": 40, "bad tcp header": 2 * 40, "own address as source": 40,
		"tiny fragment": 40, "overlapping fragments": 2 * 40, "fragment not a multiple of 8": 40,
		"oversized datagram": 40, "no udp checksum": 40, "no udp socket": 40, "source route": 40,
		"bad extension header": 40, "bad ip option": 2 * 40, "excessive extension headers": 40,
		"no next header": 40, "unknown protocol": 40, "packet too big below 1280": 40,
	}, host)
	b.checkTransfer(100_000)
	b.stopCapture()
	b.ourFramesAreSound(file, 40)
}

// RFC 4987 §3.6: during a SYN flood from random addresses, a listener observes its limit of
// half-open connections, stores nothing beyond it, and serves real clients.
func TestSYNFlood(t *testing.T) { both(t, testSYNFlood) }

func testSYNFlood(t *testing.T, f family) {
	flood := strings.Fields("hping3 -n -q -S -p 80 --rand-source -c 300000 -i u50 " + f.ip(hostIP))
	need(t, "socat")
	if f.v6 { // hping3 has only IPv4
		flood = []string{python(t), "testdata/flood.py", device, f.ip(hostIP), "80", "300000"}
	}
	need(t, flood[0])
	r := &row{
		peer:     pick(f, "hping3", "scapy"),
		scenario: "SYN flood from anywhere, a transfer during it",
	}
	f.report(t, r)
	b := newRow(t, f, "")
	r.bytes = 4_000_000
	path, want := b.randomFile("sent", r.bytes)
	sum := b.receive(80, r.bytes)
	flooding := b.start(b.command(flood[0], flood[1:]...))
	b.arrived(b.c, 10*synBacklog)
	before := memory()

	t.Log("# real clients are answered with a cookie")
	start := time.Now()
	b.must(b.command("socat", "-u", "-b65536", "OPEN:"+path, "TCP"+f.digit()+":"+f.colon(hostIP, 80)))
	assert.Equal(t, want, <-sum)
	r.took = time.Since(start)
	b.arrived(b.c, 30*synBacklog)
	assert.Less(t, memory()-before, int64(4<<20), "memory for the flood")
	select {
	case <-flooding.done:
		t.Error("the flood was over before")
	default:
	}
	flooding.stop(syscall.SIGINT)
	b.toSocat(9101, r.bytes)
}
