//go:build linux

package interop_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// gatewayIP is A's end of the TUN device.
const gatewayIP = "10.8.0.1"

// The same transfer runs twice: with whole trains that cross the TUN device in one call, and with
// single packets. The figures depend on the machine, so only compare the pairs.
func TestTUNOffload(t *testing.T) { both(t, testTUNOffload) }

func testTUNOffload(t *testing.T, f family) {
	need(t, "socat")
	for _, c := range []struct {
		name     string
		transfer func(b *bed, n int64) time.Duration
	}{
		{"kernel to node", func(b *bed, n int64) time.Duration { return b.sendFromKernel(b.a, gatewayIP, n) }},
		{"node to kernel", func(b *bed, n int64) time.Duration { return b.sendFromNode(b.a, n) }},
		{"kernel to host behind 2 routers", func(b *bed, n int64) time.Duration {
			return b.sendFromKernel(b.c, hostIP, n)
		}},
		{"host behind 2 routers to kernel", func(b *bed, n int64) time.Duration { return b.sendFromNode(b.c, n) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, plain := range []bool{false, true} {
				way := map[bool]string{false: "tun+gso", true: "tun"}[plain]
				t.Run(way, func(t *testing.T) {
					r := &row{peer: "Linux, TUN", scenario: c.name + ", " + way}
					f.report(t, r)
					b := (&bed{family: f, t: t, plain: plain}).make(nil)
					r.bytes = size(0)
					before := processorTime(t)
					r.took = c.transfer(b, r.bytes)
					spent := processorTime(t) - before
					t.Logf("%s: %.2f ns of processor a byte in the nodes", r.scenario,
						float64(spent)/float64(r.bytes))
					faces := testenv.Ask(t, b.a, control.Interfaces{})
					assert.Equal(t, way, faces[0].Offload)
					assert.Empty(t, faces[0].In.Drops)
					assert.Empty(t, faces[0].Out.Drops)
				})
			}
		})
	}
}

// processorTime returns the CPU time of this process, which includes the nodes.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var use unix.Rusage
	require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// sendFromKernel sends n bytes from the kernel to a node.
func (b *bed) sendFromKernel(to *operator.Node, ip string, n int64) time.Duration {
	b.t.Helper()
	l, err := to.Node.TCP.Listen(b.at("0.0.0.0", 9000), 0)
	require.NoError(b.t, err)
	defer l.Close()
	require.NoError(b.t, l.SetDeadline(time.Now().Add(transferTime(n))))
	socat := b.start(b.commandFor(transferTime(n), "socat", "-u", "-b262144",
		fmt.Sprintf("OPEN:/dev/zero,readbytes=%d", n), "TCP"+b.digit()+":"+b.colon(ip, 9000)))
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

// sendFromNode sends n bytes from a node to the kernel.
func (b *bed) sendFromNode(from *operator.Node, n int64) time.Duration {
	b.t.Helper()
	socat := b.start(b.commandFor(transferTime(n), "socat", "-u", "-b262144",
		"TCP"+b.digit()+"-LISTEN:9001,reuseaddr", "OPEN:/dev/null"))
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

// Datagrams also cross the device as trains, with USO if the kernel supports it, and arrive as
// single datagrams. This applies to datagrams that the kernel splits for a program (UDP_SEGMENT),
// and to their echoes.
func TestDatagramsCrossAsTrains(t *testing.T) { both(t, testDatagramsCrossAsTrains) }

func testDatagramsCrossAsTrains(t *testing.T, f family) {
	r := &row{peer: "Linux, TUN", scenario: "UDP_SEGMENT to us, and echoed"}
	f.report(t, r)
	b := newBed(t, f, 0, nil)
	var kernel *net.UDPConn
	require.NoError(t, b.inside(func() error {
		c, err := net.ListenPacket("udp"+f.digit(), f.colon(kernelIP, 5353))
		if err == nil {
			kernel = c.(*net.UDPConn)
		}
		return err
	}))
	defer kernel.Close()
	const size, last, count = 1000, 345, 13
	raw, err := kernel.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size)
	}))
	require.NoError(t, err)
	ours, err := b.c.Node.Packets.Listen(f.at("0.0.0.0", 5354))
	require.NoError(t, err)
	defer ours.Close()
	soon := time.Now().Add(patience)
	require.NoError(t, kernel.SetDeadline(soon))
	require.NoError(t, ours.SetDeadline(soon))

	text := make([]byte, (count-1)*size+last)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(text) // never fails
	p := make([]byte, 2000)
	for round := range 20 {
		_, err := kernel.WriteToUDPAddrPort(text, f.at(hostIP, 5354))
		require.NoError(t, err)
		for i := range count {
			want := text[i*size : min(len(text), (i+1)*size)]
			n, from, err := ours.ReadFromAddrPort(p)
			require.NoError(t, err, "round %d, datagram %d", round, i)
			require.Equal(t, want, p[:n])
			_, err = ours.WriteToAddrPort(p[:n], from)
			require.NoError(t, err)
		}
		for i := range count {
			n, _, err := kernel.ReadFromUDPAddrPort(p)
			require.NoError(t, err, "round %d, echo %d", round, i)
			require.Equal(t, text[i*size:min(len(text), (i+1)*size)], p[:n])
		}
	}
	faces := testenv.Ask(t, b.a, control.Interfaces{})
	// maximum number of MLD reports and neighbor discovery messages in each direction
	extra := uint64(pick(f, 0, 10))
	assert.LessOrEqual(t, faces[0].Out.Packets-20*count, extra)
	assert.LessOrEqual(t, faces[0].In.Packets-20*count, extra)
	assert.Empty(t, faces[0].In.Drops)
	assert.Empty(t, faces[0].Out.Drops)
}
