//go:build linux

package interop_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// flags are Wireshark's findings about TCP segments.
var flags = []string{
	"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order",
	"duplicate_ack", "lost_segment", "ack_lost_segment", "zero_window", "zero_window_probe",
	"zero_window_probe_ack", "window_full", "keep_alive", "keep_alive_ack", "reused_ports",
}

// lossFlags are the findings that a lossy router explains. Wireshark calls a segment "out of order"
// if it is retransmitted within three milliseconds. It calls a retransmission "spurious" if the
// segment had arrived: the acknowledgment may have been lost, or a tail loss probe was early.
var lossFlags = []string{
	"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order",
	"duplicate_ack", "lost_segment",
}

// verdict is tshark's report on a capture.
type verdict struct {
	packets, data  int
	malformed, bad int // numbers of malformed packets, and of packets with a wrong checksum
	flags          map[string]int
}

// analyze runs tshark on a capture.
func (b *bed) analyze(file string) verdict {
	b.t.Helper()
	args := []string{
		"-r", file, "-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
		"-o", "tcp.analyze_sequence_numbers:TRUE", "-T", "fields", "-E", "separator=|",
		"-e", "_ws.malformed", "-e", "ip.checksum.status", "-e", "tcp.checksum.status",
		"-e", "tcp.len", "-e", pick(b.family, "ip.src", "ipv6.src"), "-e", "tcp.checksum", "-e", "tcp.checksum_calculated",
	}
	const fixed = 7
	for _, f := range flags {
		args = append(args, "-e", "tcp.analysis."+f)
	}
	v := verdict{flags: map[string]int{}}
	for line := range strings.Lines(b.must(b.commandFor(2*patience, "tshark", args...))) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "|")
		require.Len(b.t, cells, fixed+len(flags), line)
		v.packets++
		if cells[0] != "" {
			v.malformed++
		}
		// Linux writes 0xffff for a sum of zero, as UDP must (skb_checksum_help). Both are the same
		// number in one's complement, and tshark complains about nothing else.
		zero := cells[4] == b.ip(kernelIP) && cells[5] == "0xffff" && cells[6] == "0x0000"
		// otherwise it is a message of RIPng
		isTCP := cells[3] != ""
		// 1 stands for a correct checksum
		if cells[1] != pick(b.family, "1", "") || isTCP && cells[2] != "1" && !zero {
			v.bad++
		}
		if isTCP && cells[3] != "0" {
			v.data++
		}
		for i, f := range flags {
			if cells[fixed+i] != "" {
				v.flags[f]++
			}
		}
	}
	return v
}

// awaitNoConns waits until the kernel has no connections, so that a capture contains whole
// connections.
func (b *bed) awaitNoConns() {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		said := b.must(b.command("ss", "-Htan", "state", "connected", "exclude", "time-wait",
			"dst", b.host()))
		if said == "" {
			return
		}
		require.True(b.t, time.Now().Before(end), said)
	}
}

// chunk is how much one end sends before it waits for a reply from the other's program. It is less
// than any window, so that a reader that is slow for a moment does not close the window. The reply
// has a few bytes, because Wireshark takes a retransmission of one byte for a keepalive.
const (
	chunk       = 500_000
	answerBytes = 8
)

// converse sends n bytes in chunks.
func converse(from, to net.Conn, n int64) error {
	done := make(chan error, 1)
	go func() {
		p := make([]byte, chunk)
		for left := n; left > 0; left -= chunk {
			if _, err := io.ReadFull(to, p); err != nil {
				done <- err
				return
			}
			if _, err := to.Write(p[:answerBytes]); err != nil {
				done <- err
				return
			}
		}
		done <- to.Close()
	}()
	p := make([]byte, chunk)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(p) // never fails
	answer := make([]byte, answerBytes)
	for left := n; left > 0; left -= chunk {
		if _, err := from.Write(p); err != nil {
			return err
		}
		if _, err := io.ReadFull(from, answer); err != nil {
			return err
		}
		if !bytes.Equal(answer, p[:answerBytes]) {
			return errors.New("other bytes arrived")
		}
	}
	return errors.Join(<-done, from.Close())
}

// captureBoth captures a conversation at both ends and returns tshark's reports.
func (b *bed) captureBoth(kernelSends bool, n int64, folder string) map[string]verdict {
	t := b.t
	t.Helper()
	kernels := filepath.Join(folder, "kernels.pcapng")
	s := b.sniff(kernels)
	ours, theirs, err := b.pair(9000, !kernelSends)
	require.NoError(t, err)
	end := time.Now().Add(transferTime(n))
	require.NoError(t, errors.Join(ours.SetDeadline(end), theirs.SetDeadline(end)))
	if kernelSends {
		require.NoError(t, converse(theirs, ours, n))
	} else {
		require.NoError(t, converse(ours, theirs, n))
	}
	b.awaitNoConns()
	s.end()
	testenv.Ask(t, b.c, control.PcapStop{})
	return map[string]verdict{
		"ours": b.analyze(filepath.Join(folder, "ours.pcapng")), "the kernel's": b.analyze(kernels),
	}
}

// tshark examines both ends of transfers in both directions. No checksum is wrong and no packet is
// malformed. Without loss, no segment is retransmitted, out of order or outside the window; with
// loss, all findings are those that loss explains.
func TestTsharkFindsNothing(t *testing.T) { both(t, testTsharkFindsNothing) }

func testTsharkFindsNothing(t *testing.T, f family) {
	need(t, "tshark", "ss")
	for _, loss := range losses {
		for _, kernelSends := range []bool{true, false} {
			way := map[bool]string{true: "Linux sends", false: "we send"}[kernelSends]
			t.Run(fmt.Sprintf("%g%% %s", loss, way), func(t *testing.T) {
				r := &row{
					peer: "Linux, tshark", loss: loss, scenario: "captures of both ends, " + way,
				}
				f.report(t, r)
				tries, link := 1, ""
				if loss == 0 {
					tries, link = 5, "link if0 delay 25ms\n"
				}
				for try := 1; ; try++ {
					folder := f.captures(t, fmt.Sprintf("%g%% %s %d", loss, way, try))
					// Use single packets: a packet socket would show the trains of the kernel's end
					// before they are split, without checksums.
					b := (&bed{family: f, t: t, loss: loss, extra: link, plain: true}).make(
						map[string]string{"C": filepath.Join(folder, "ours.pcapng")})
					b.set("tcp.ecn", "on")
					if try > probeTries {
						b.sysctl("net/ipv4/tcp_early_retrans", "0")
						b.set("tcp.recovery", "sack")
						r.result = "ok, no TLP"
					}
					n := min(size(loss), 10_000_000)
					seen := b.captureBoth(kernelSends, n, folder)
					if try < tries && len(seen["ours"].flags)+len(seen["the kernel's"].flags) > 0 {
						t.Logf("again, for %+v", seen)
						continue
					}
					for whose, v := range seen {
						b.assertClean(whose, v, n)
					}
					return
				}
			})
		}
	}
}

// A train that crosses the TUN device appears in the node's captures as it leaves on the links: as
// single packets with full checksums.
func TestTsharkSeesTrainsAsPackets(t *testing.T) { both(t, testTsharkSeesTrainsAsPackets) }

func testTsharkSeesTrainsAsPackets(t *testing.T, f family) {
	need(t, "tshark", "socat")
	for name, transfer := range map[string]func(b *bed, n int64) time.Duration{
		"Linux sends": func(b *bed, n int64) time.Duration { return b.sendFromKernel(b.c, hostIP, n) },
		"we send":     func(b *bed, n int64) time.Duration { return b.sendFromNode(b.c, n) },
	} {
		t.Run(name, func(t *testing.T) {
			r := &row{peer: "Linux, tshark", scenario: "captures of the gateway, " + name}
			f.report(t, r)
			const n = 4_000_000
			file := filepath.Join(f.captures(t, "gateway "+name), "gateway.pcapng")
			b := newBed(t, f, 0, map[string]string{"A": file})
			transfer(b, n)
			testenv.Ask(t, b.a, control.PcapStop{})
			v := b.analyze(file)
			t.Logf("%+v", v)
			assert.Zero(t, v.malformed)
			assert.Zero(t, v.bad, "wrong checksums")
			const mtu = 1400
			assert.Greater(t, v.data, 2*n/mtu, "over both of its interfaces")
		})
	}
}

// probeTries is how often the clean captures are tried with tail loss probes. On a busy machine
// either end can take a late segment for lost, and probe. Round trips of a tenth of a second make
// that rare. If a probe is still sent, the test disables probes, and the table says so.
const probeTries = 3

// captures returns the folder for captures.
func (f family) captures(t *testing.T, name string) string {
	t.Helper()
	if *keep == "" {
		return t.TempDir()
	}
	folder := filepath.Join(*keep, name+" "+f.String())
	require.NoError(t, os.MkdirAll(folder, 0o755))
	return folder
}

// assertClean checks tshark's report on one end.
func (b *bed) assertClean(whose string, v verdict, n int64) {
	t := b.t
	t.Helper()
	t.Logf("%s: %+v", whose, v)
	assert.Greater(t, v.data, int(n/1400), "%s: data segments of the transfer", whose)
	assert.Zero(t, v.malformed, "%s: malformed", whose)
	assert.Zero(t, v.bad, "%s: wrong checksums", whose)
	for _, f := range slices.Sorted(maps.Keys(v.flags)) {
		if b.loss == 0 || !slices.Contains(lossFlags, f) {
			assert.Zero(t, v.flags[f], "%s: tcp.analysis.%s", whose, f)
		}
	}
	assert.LessOrEqual(t, v.flags["spurious_retransmission"], 10+v.data/100,
		"%s: unexplained findings", whose)
}
