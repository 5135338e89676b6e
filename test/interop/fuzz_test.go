//go:build linux

package interop_test

import (
	"flag"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

var (
	fuzzed   = flag.Int("fuzz-packets", 40_000, "number of `packets` from scapy; a tenth unless TIDEPOOL_LONG is set")
	fuzzSeed = flag.Int("fuzz-seed", 4, "the `seed` of scapy's packets")
)

// python returns a Python that has scapy: Debian's Python, even if the machine has others.
func python(t *testing.T) string {
	t.Helper()
	for _, p := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(p, "-c", "import scapy").Run() == nil {
			return p
		}
	}
	t.Skip("skip: needs scapy")
	return ""
}

// The host and the routers on the path get thousands of random packets: IP, ICMP, UDP and TCP with
// arbitrary fields, and for IPv6 also chains of extension headers and neighbor discovery. No node
// exits, none keeps much memory, and all answers are valid. Afterwards a file can be transferred in
// both directions.
func TestScapyFuzz(t *testing.T) { both(t, testScapyFuzz) }

func testScapyFuzz(t *testing.T, f family) {
	need(t, "tshark", "socat")
	with := python(t)
	count := *fuzzed
	if !testenv.Long() {
		count /= 10
	}
	f.report(t, &row{
		peer:     "scapy",
		scenario: strconv.Itoa(count) + " fuzzed packets, then a transfer",
	})
	b := newRow(t, f, "")
	b.web(80)
	b.echoUDP(53)
	b.must(b.command("ip", "link", "set", device, "txqueuelen", "10000"))
	file := filepath.Join(f.captures(t, "scapy"), "ours.pcapng")
	testenv.Ask(t, b.c, control.PcapStart{File: file, Snaplen: 0})
	send := func(seed, n int) {
		// scapy makes thousands of packets in a second, and about a hundred under a load of 30.
		limit := patience + time.Duration(n)*25*time.Millisecond
		out := b.must(b.commandFor(limit, with, "testdata/fuzz.py", device, f.ip(hostIP),
			strconv.Itoa(seed), strconv.Itoa(n)))
		t.Log(strings.TrimSpace(out))
	}
	looked := min(count, 10_000)
	send(*fuzzSeed, looked)
	b.stopCapture()
	before := memory()
	send(*fuzzSeed+1, count-looked)

	faces := testenv.Ask(t, b.a, control.Interfaces{})
	assert.GreaterOrEqual(t, faces[0].Device.InPackets, uint64(count), "none was lost before the device")
	grown := memory() - before
	t.Logf("%d bytes more on the heap", grown)
	assert.Less(t, grown, int64(64<<20), "growth of the heap")
	for name, n := range map[string]*operator.Node{"A": b.a, "B": b.b, "C": b.c} {
		drops := map[string]uint64{}
		b.drops(n, drops)
		t.Logf("%s dropped %v", name, drops)
	}
	b.ourFramesAreSound(file, looked/50)
	b.checkTransfer(1_000_000)
}
