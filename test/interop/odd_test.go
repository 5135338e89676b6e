//go:build linux

package interop_test

import (
	"fmt"
	"path/filepath"
	"regexp"
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
	<-p.done // it fails if no packet comes back
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

// Flags, fragments and addresses that no honest program sends: the node answers as required, drops
// the rest with a counted reason, and a file crosses afterwards.
func TestHpingOddPackets(t *testing.T) {
	var f family // hping3 has no other
	need(t, "hping3", "socat", "tshark")
	f.report(t, &row{peer: "hping3", scenario: "odd flags, fragments, sources; then a transfer"})
	const workers = 5 // hping3 takes any answer for its own
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

// RFC 4987 §3.6: during a SYN flood from random addresses a listener keeps its limit of half-open
// connections, stores nothing more, and serves real clients.
func TestHpingSYNFlood(t *testing.T) {
	var f family // hping3 has no other
	need(t, "hping3", "socat")
	r := &row{peer: "hping3", scenario: "SYN flood from anywhere, a transfer during it"}
	f.report(t, r)
	b := newRow(t, f, "")
	r.bytes = 4_000_000
	path, want := b.randomFile("sent", r.bytes)
	sum := b.receive(80, r.bytes)
	flood := b.start(b.command("hping3", "-n", "-q", "-S", "-p", "80", "--rand-source",
		"-c", "300000", "-i", "u50", f.ip(hostIP)))
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
	case <-flood.done:
		t.Error("the flood was over before")
	default:
	}
	flood.stop(syscall.SIGINT)
	b.toSocat(9101, r.bytes)
}
