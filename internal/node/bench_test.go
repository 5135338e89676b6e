package node

import (
	"fmt"
	"io"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// BenchmarkStream transfers bytes between nodes of one process. It measures the loop, the rings,
// the whole stack and the kernel's UDP, without the cost of processes.
func BenchmarkStream(b *testing.B) {
	for _, mode := range []string{"gso", "mmsg", "plain"} {
		b.Run("direct/"+mode, func(b *testing.B) {
			from, to := twoNodes(b, Config{Offload: mode})
			stream(b, from, to, "10.0.0.2:80")
		})
	}
	for _, percent := range []float64{0, 2, 10} {
		b.Run(fmt.Sprintf("router/loss=%v%%", percent), func(b *testing.B) {
			to, router, from := line3(b, Config{Seed: 1})
			_, err := router.Do(b.Context(), control.SetLoss{Percent: percent})
			require.NoError(b, err)
			stream(b, from, to, "10.0.0.1:80")
		})
	}
}

func stream(b *testing.B, from, to *Node, addr string) {
	b.Helper()
	client, server := connect(b, from, to, addr)
	done := make(chan int64, 1)
	go func() {
		n, _ := io.Copy(io.Discard, server)
		done <- n
	}()
	p := make([]byte, 256<<10)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := client.Write(p)
		require.NoError(b, err)
	}
	require.NoError(b, client.CloseWrite())
	require.Equal(b, int64(b.N)*int64(len(p)), <-done)
	info, err := client.Info()
	require.NoError(b, err)
	b.ReportMetric(float64(info.RTT.Microseconds()), "µs-rtt")
	b.ReportMetric(float64(info.TotalRTO), "RTOs")
	b.ReportMetric(float64(info.TailProbes), "TLPs")
	b.ReportMetric(float64(info.TotalRetrans), "retrans")
}

// BenchmarkConnectClose opens and closes a connection, from the handshake to the FIN.
func BenchmarkConnectClose(b *testing.B) {
	from, to := twoNodes(b, Config{})
	at := netip.MustParseAddrPort("10.0.0.2:80")
	l, err := to.TCP.Listen(at, 0)
	require.NoError(b, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	for b.Loop() {
		c, err := from.TCP.Dial(b.Context(), at)
		require.NoError(b, err)
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(b, err, io.EOF)
		require.NoError(b, c.Close())
	}
	require.NoError(b, l.Close())
}
