//go:build linux

package interop_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// gatewayIP is A's end of the TUN device.
const gatewayIP = "10.8.0.1"

// The same transfer with whole trains crossing the TUN device in one call, and
// packet by packet. The figures are a matter of the machine: look at the pairs.
func TestTUNOffload(t *testing.T) {
	need(t, "socat")
	for _, c := range []struct {
		name     string
		transfer func(b *bed, n int64) time.Duration
	}{
		{"kernel to node", func(b *bed, n int64) time.Duration { return b.drink(b.a, gatewayIP, n) }},
		{"node to kernel", func(b *bed, n int64) time.Duration { return b.pour(b.a, n) }},
		{"kernel to host behind 2 routers", func(b *bed, n int64) time.Duration {
			return b.drink(b.c, hostIP, n)
		}},
		{"host behind 2 routers to kernel", func(b *bed, n int64) time.Duration { return b.pour(b.c, n) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, plain := range []bool{false, true} {
				way := map[bool]string{false: "tun+gso", true: "tun"}[plain]
				t.Run(way, func(t *testing.T) {
					r := &row{peer: "Linux, TUN", scenario: c.name + ", " + way}
					report(t, r)
					b := (&bed{t: t, plain: plain}).make(nil)
					r.bytes = size(0)
					before := processorTime(t)
					r.took = c.transfer(b, r.bytes)
					spent := processorTime(t) - before
					t.Logf("%s: %.2f ns of processor a byte in the nodes", r.scenario,
						float64(spent)/float64(r.bytes))
					faces, err := control.Ask(t.Context(), b.a.Operator(), control.Interfaces{})
					require.NoError(t, err)
					assert.Equal(t, way, faces[0].Offload)
					assert.Empty(t, faces[0].In.Drops)
					assert.Empty(t, faces[0].Out.Drops)
				})
			}
		})
	}
}

// processorTime is what this process, and so its nodes, has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var use unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// drink has the kernel send n bytes to a node.
func (b *bed) drink(to *node.Node, ip string, n int64) time.Duration {
	b.t.Helper()
	l, err := to.Listen(at("0.0.0.0", 9000), 0)
	require.NoError(b.t, err)
	defer l.Close()
	require.NoError(b.t, l.SetDeadline(time.Now().Add(transferTime(n))))
	socat := b.start(b.commandFor(transferTime(n), "socat", "-u", "-b262144",
		fmt.Sprintf("OPEN:/dev/zero,readbytes=%d", n), "TCP4:"+colon(ip, 9000)))
	c, err := l.Accept()
	require.NoError(b.t, err)
	defer c.Close()
	start := time.Now()
	require.NoError(b.t, c.SetDeadline(start.Add(transferTime(n))))
	got, err := io.Copy(io.Discard, c)
	took := time.Since(start)
	require.NoError(b.t, err)
	require.Equal(b.t, n, got)
	socat.wait()
	return took
}

// pour has a node send n bytes to the kernel.
func (b *bed) pour(from *node.Node, n int64) time.Duration {
	b.t.Helper()
	socat := b.start(b.commandFor(transferTime(n), "socat", "-u", "-b262144",
		"TCP4-LISTEN:9001,reuseaddr", "OPEN:/dev/null"))
	c := b.dialFrom(from, 9001)
	defer c.Close()
	start := time.Now()
	require.NoError(b.t, c.SetDeadline(start.Add(transferTime(n))))
	chunk := make([]byte, 256<<10)
	for left := n; left > 0; {
		k, err := c.Write(chunk[:min(left, int64(len(chunk)))])
		require.NoError(b.t, err)
		left -= int64(k)
	}
	require.NoError(b.t, c.CloseWrite())
	socat.wait()
	return time.Since(start)
}
