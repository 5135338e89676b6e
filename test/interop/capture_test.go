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

// flags are what Wireshark finds remarkable about a TCP segment.
var flags = []string{
	"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order",
	"duplicate_ack", "lost_segment", "ack_lost_segment", "zero_window", "zero_window_probe",
	"zero_window_probe_ack", "window_full", "keep_alive", "keep_alive_ack", "reused_ports",
}

// byLoss are the flags that a lossy router is the reason for. Wireshark calls a
// segment that is sent again within three milliseconds out of order. One that
// was sent again although it had arrived is spurious: its acknowledgment may
// have been lost, or a tail loss probe was early.
var byLoss = []string{
	"retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order",
	"duplicate_ack", "lost_segment",
}

// verdict is what tshark says of a capture.
type verdict struct {
	packets, data  int
	malformed, bad int // of them, and those with a wrong checksum
	flags          map[string]int
}

// judge has tshark read a capture.
func (b *bed) judge(file string) verdict {
	b.t.Helper()
	args := []string{
		"-r", file, "-n", "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
		"-o", "tcp.analyze_sequence_numbers:TRUE", "-T", "fields", "-E", "separator=|",
		"-e", "_ws.malformed", "-e", "ip.checksum.status", "-e", "tcp.checksum.status",
		"-e", "tcp.len", "-e", "ip.src", "-e", "tcp.checksum", "-e", "tcp.checksum_calculated",
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
		// Linux writes 0xffff for a sum of zero, as UDP has to (skb_checksum_help); it is the same
		// number in one's complement, and tshark's only complaint about it.
		zero := cells[4] == kernelIP && cells[5] == "0xffff" && cells[6] == "0x0000"
		if cells[1] != "1" || cells[2] != "1" && !zero { // 1: good
			v.bad++
		}
		if cells[3] != "0" {
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

// gone waits until the kernel has no connection left, so that a capture that
// ends now is of whole connections.
func (b *bed) gone() {
	b.t.Helper()
	for end := time.Now().Add(patience); ; {
		said := b.must(b.command("ss", "-Htan", "state", "connected", "exclude", "time-wait",
			"dst", hostIP))
		if said == "" {
			return
		}
		require.True(b.t, time.Now().Before(end), said)
	}
}

// chunk is what one end sends before it waits for an answer of the other's program:
// less than any window, so that a reader that is slow for a moment closes none.
// The answer is a few bytes, for Wireshark takes a byte that is sent again for a
// keepalive.
const (
	chunk       = 500_000
	answerBytes = 8
)

// converse sends n bytes, chunk by chunk.
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

// observe captures a conversation at both ends and returns what tshark says.
func (b *bed) observe(kernelSends bool, n int64, folder string) map[string]verdict {
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
	b.gone()
	s.end()
	testenv.Ask(t, b.c, control.PcapStop{})
	return map[string]verdict{
		"ours": b.judge(filepath.Join(folder, "ours.pcapng")), "the kernel's": b.judge(kernels),
	}
}

// Wireshark looks at both ends of transfers both ways. Whatever the router does:
// no checksum is wrong and no packet malformed. Where it drops nothing, nothing
// is sent twice, out of order or into a closed window; where it does, nothing is
// remarkable but what loss explains.
func TestTsharkFindsNothing(t *testing.T) {
	need(t, "tshark", "ss")
	for _, loss := range losses {
		for _, kernelSends := range []bool{true, false} {
			way := map[bool]string{true: "Linux sends", false: "we send"}[kernelSends]
			t.Run(fmt.Sprintf("%g%% %s", loss, way), func(t *testing.T) {
				r := &row{
					peer: "Linux, tshark", loss: loss, scenario: "captures of both ends, " + way,
				}
				report(t, r)
				tries, link := 1, ""
				if loss == 0 {
					tries, link = 5, "link if0 delay 25ms\n"
				}
				for try := 1; ; try++ {
					folder := captures(t, fmt.Sprintf("%g%% %s %d", loss, way, try))
					// Packet by packet: a packet socket shows the trains of the kernel's end as
					// they are before anybody cuts them, without checksums.
					b := (&bed{t: t, loss: loss, extra: link, plain: true}).make(
						map[string]string{"C": filepath.Join(folder, "ours.pcapng")})
					b.set("tcp.ecn", "on")
					if try > probing {
						b.sysctl("net/ipv4/tcp_early_retrans", "0")
						b.set("tcp.recovery", "sack")
						r.result = "ok, no TLP"
					}
					n := min(size(loss), 10_000_000)
					seen := b.observe(kernelSends, n, folder)
					if try < tries && len(seen["ours"].flags)+len(seen["the kernel's"].flags) > 0 {
						t.Logf("again, for %+v", seen)
						continue
					}
					for whose, v := range seen {
						b.unremarkable(whose, v, n)
					}
					return
				}
			})
		}
	}
}

// What crosses the TUN device as a train is in the node's captures as it leaves on the
// links: every packet by itself, with whole checksums.
func TestTsharkSeesTrainsCutUp(t *testing.T) {
	need(t, "tshark", "socat")
	for name, transfer := range map[string]func(b *bed, n int64) time.Duration{
		"Linux sends": func(b *bed, n int64) time.Duration { return b.drink(b.c, hostIP, n) },
		"we send":     func(b *bed, n int64) time.Duration { return b.pour(b.c, n) },
	} {
		t.Run(name, func(t *testing.T) {
			r := &row{peer: "Linux, tshark", scenario: "captures of the gateway, " + name}
			report(t, r)
			const n = 4_000_000
			file := filepath.Join(captures(t, "gateway "+name), "gateway.pcapng")
			b := newBed(t, 0, map[string]string{"A": file})
			transfer(b, n)
			testenv.Ask(t, b.a, control.PcapStop{})
			v := b.judge(file)
			t.Logf("%+v", v)
			assert.Zero(t, v.malformed)
			assert.Zero(t, v.bad, "wrong checksums")
			const mtu = 1400
			assert.Greater(t, v.data, 2*n/mtu, "over both of its interfaces")
		})
	}
}

// probing is how often the clean captures are tried with tail loss probes. Where
// every thread waits for a processor, either end can take for lost what was only
// late, and probe. Round trips of a tenth of a second make that rare. Where the
// machine is slower still, the probes are left out, and the table says so.
const probing = 3

// captures is a folder for them.
func captures(t *testing.T, name string) string {
	t.Helper()
	if *keep == "" {
		return t.TempDir()
	}
	folder := filepath.Join(*keep, name)
	require.NoError(t, os.MkdirAll(folder, 0o755))
	return folder
}

// unremarkable checks what tshark said of one end.
func (b *bed) unremarkable(whose string, v verdict, n int64) {
	t := b.t
	t.Helper()
	t.Logf("%s: %+v", whose, v)
	assert.Greater(t, v.data, int(n/1400), "%s: the transfer is there", whose)
	assert.Zero(t, v.malformed, "%s: malformed", whose)
	assert.Zero(t, v.bad, "%s: wrong checksums", whose)
	for _, f := range slices.Sorted(maps.Keys(v.flags)) {
		if b.loss == 0 || !slices.Contains(byLoss, f) {
			assert.Zero(t, v.flags[f], "%s: tcp.analysis.%s", whose, f)
		}
	}
	assert.LessOrEqual(t, v.flags["spurious_retransmission"], 10+v.data/100,
		"%s: for nothing", whose)
}
