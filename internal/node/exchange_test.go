package node

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/stack"
)

// exchangeRing starts a ring of routers in one Exchange. Node i has the addresses 10.0.i.1 and
// 10.0.(i-1).2, and all packets travel in one direction.
func exchangeRing(t *testing.T, size int) (nodes []*Node) {
	t.Helper()
	ports := freePorts(t, 2*size) // of if0 and if1
	var x link.Exchange
	for i := range size {
		before, after := (i+size-1)%size, (i+1)%size
		file := testenv.ParseNode(t, fmt.Sprint("N", i), fmt.Sprintf(
			`interface if0 10.0.%d.1/24 127.0.0.1:%d
interface if1 10.0.%d.2/24 127.0.0.1:%d
neighbor 10.0.%d.2 at 127.0.0.1:%d via if0
neighbor 10.0.%d.1 at 127.0.0.1:%d via if1
routing static
route 0.0.0.0/0 via 10.0.%d.2`,
			i, ports[2*i], before, ports[2*i+1],
			i, ports[2*after+1], before, ports[2*before], i))
		file.Forwarding = true
		nodes = append(nodes, startFile(t, Config{Exchange: &x}, file))
	}
	return nodes
}

// kernelPackets returns how many packets a node has passed to the kernel.
func kernelPackets(t *testing.T, n *Node) (packets uint64) {
	t.Helper()
	require.NoError(t, n.Call(func(*stack.Stack, clock.Time) error {
		for _, d := range n.Devices.list {
			packets += d.(*link.UDP).Socket().Writes
		}
		return nil
	}))
	return packets
}

// Nodes of one process exchange data around a ring: large transfers in both directions, and many
// small requests at the same time. No packet crosses the kernel.
func TestExchangeRing(t *testing.T) {
	t.Parallel()
	nodes := exchangeRing(t, 8)
	client, server := connect(t, nodes[0], nodes[4], "10.0.4.1:80")
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	want := sha256.Sum256(data)
	var wg sync.WaitGroup
	for _, way := range []struct{ from, to *Conn }{{client, server}, {server, client}} {
		wg.Go(func() {
			_, err := way.from.Write(data)
			assert.NoError(t, err)
			assert.NoError(t, way.from.CloseWrite())
		})
		wg.Go(func() {
			got, err := io.ReadAll(way.to)
			assert.NoError(t, err)
			assert.Equal(t, want, sha256.Sum256(got))
		})
	}
	for i := range nodes {
		to := (i + 3) % len(nodes)
		ask, _ := echoing(t, nodes[i], nodes[to], fmt.Sprintf("10.0.%d.1:7", to))
		wg.Go(func() {
			for range 200 {
				ask()
			}
		})
	}
	wg.Wait()
	for _, n := range nodes {
		assert.Zero(t, kernelPackets(t, n))
	}
}

// Nodes close while others deliver packets to them and through them.
func TestExchangeNodesClose(t *testing.T) {
	t.Parallel()
	for range 5 {
		nodes := exchangeRing(t, 4)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i, n := range nodes {
			l, err := n.TCP.Listen(netip.MustParseAddrPort("0.0.0.0:7"), 0)
			require.NoError(t, err)
			wg.Go(func() { echoAll(l) })
			for k := 1; k < 4; k++ {
				at := netip.MustParseAddrPort(fmt.Sprintf("10.0.%d.1:7", (i+k)%4))
				wg.Go(func() {
					for ctx.Err() == nil && echoed(ctx, n, at, []byte("a request")) == nil {
					}
				})
			}
		}
		for _, n := range nodes {
			wg.Go(func() { assert.NoError(t, n.Close()) })
		}
		time.AfterFunc(time.Second, cancel)
		wg.Wait()
		cancel()
	}
}

// echoAll serves connections until the listener closes.
func echoAll(l net.Listener) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			_, _ = io.Copy(c, c)
			_ = c.Close()
		})
	}
}
