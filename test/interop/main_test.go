//go:build linux

// Package interop_test tests whole nodes against other implementations: the Linux kernel, behind a
// TUN device in a network namespace of the test, and socat, curl, nginx, iperf3, tshark, tcpdump,
// ping, traceroute, mtr, nmap, hping3, scapy, BIRD and FRR.
//
// A bed is such a namespace with three nodes in it:
//
//	kernel 10.8.0.2 -- tun -- A -- udp -- B (lossy) -- udp -- C 10.2.0.2
//
// bed_test.go builds it, with the addresses of one family. family_test.go runs each test over IPv4
// and IPv6. The tests of the bed:
//
//	transfer, http, datagram   data between C and the kernel's programs
//	features                   negotiated options
//	tcp, window                resets, half-closes, urgent data, closed windows
//	capture                    tshark reads captures of both ends
//	conn                       net.Conn with the kernel at one end
//	portforward                port forwards to and from services of this machine
//	course                     small peers with the quirks of university courses' nodes
//	bird, frr                  RIPv2 and RIPng between our routers and BIRD or FRR
//	perf                       iperf3 as the client of our server, and the reverse
//	names                      dig and the C library resolve names
//
// row_test.go builds a bed of three routers in a row with a host behind them. Its tests:
//
//	hops                       the path through the routers
//	scan                       scans of the host's ports
//	odd, fuzz                  malformed and unusual packets
//	extension                  IPv6 extension headers
//	discovery                  router advertisements in both directions, multicast groups
//
// The tests need root and the programs that .ci/run installs. With -table they print the results as
// one table, as make interop does.
package interop_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

var (
	wantTable = flag.Bool("table", false, "print the results as a table")
	keep      = flag.String("keep", "", "keep the captures in `FOLDER`")
	megabytes = flag.Int("mb", 100, "`MEGABYTES` of a transfer with TIDEPOOL_LONG; a tenth at 5 % loss")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := testenv.ReapOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := flag.Set("test.parallel", "8"); err != nil { // parallel tests mostly wait
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if *wantTable {
		printTable()
	}
	os.Exit(code)
}

// row is one line of the table.
type row struct {
	peer, scenario string
	family         string  // empty: both families, or none
	loss           float64 // in percent
	bytes          int64   // 0: no transfer
	took           time.Duration
	result         string
}

var (
	rowsMu sync.Mutex
	rows   []row
)

// report adds a row of the family to the table at the end of the test.
func (f family) report(t *testing.T, r *row) {
	t.Helper()
	r.family = f.String()
	report(t, r)
}

// report adds a row to the table at the end of the test.
func report(t *testing.T, r *row) {
	t.Helper()
	t.Cleanup(func() {
		switch {
		case t.Failed():
			r.result = "FAILED"
		case t.Skipped():
			r.result = "skipped"
		case r.result == "":
			r.result = "ok"
		}
		if r.bytes > 0 && r.took > 0 {
			t.Logf("%s: %s at %g %% loss: %.1f MB/s", r.peer, r.scenario, r.loss, r.rate())
		}
		rowsMu.Lock()
		defer rowsMu.Unlock()
		rows = append(rows, *r)
	})
}

func (r *row) rate() float64 { return float64(r.bytes) / 1e6 / r.took.Seconds() }

func printTable() {
	const format = "%-14s %-4s %-50s %6s %-10s %8s\n"
	fmt.Printf("\n"+format, "peer", "", "scenario", "loss", "result", "MB/s")
	fmt.Println(strings.Repeat("-", 97))
	for i := range rows {
		r := &rows[i]
		rate := ""
		if r.bytes > 0 && r.took > 0 {
			rate = fmt.Sprintf("%.1f", r.rate())
		}
		fmt.Printf(format, r.peer, r.family, r.scenario, fmt.Sprintf("%g %%", r.loss), r.result, rate)
	}
}

// need skips the test if a program is missing, or without TIDEPOOL_LONG: these tests together take
// longer than all other tests of the tree.
func need(t *testing.T, programs ...string) {
	t.Helper()
	testenv.NeedLong(t)
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	if _, err := os.Stat("/dev/net/tun"); errors.Is(err, os.ErrNotExist) {
		t.Skip("skip: needs /dev/net/tun")
	}
	for _, p := range append(programs, "ip") {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip("skip: needs " + p)
		}
	}
}

// size returns the number of bytes for a transfer at a loss rate in percent.
func size(loss float64) int64 {
	n := int64(*megabytes) * 1_000_000
	if !testenv.Long() {
		n = 4_000_000
	}
	if loss >= 5 {
		n /= 10
	}
	return n
}
