package tidepool_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tidepool-net/tidepool"
	"github.com/tidepool-net/tidepool/internal/link"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// open starts a node that ends with the test.
func open(tb testing.TB, cfg tidepool.Config) *tidepool.Node {
	tb.Helper()
	n, err := tidepool.Open(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close()) })
	return n
}

// pair starts two nodes on a link in memory: 10.0.0.1 and 10.0.0.2.
func pair(tb testing.TB, cfg tidepool.Config) (a, b *tidepool.Node) {
	tb.Helper()
	x, y := tidepool.Pipe(0)
	return open(tb, host(cfg, "10.0.0.1/24", "", x)), open(tb, host(cfg, "10.0.0.2/24", "", y))
}

// host is cfg with one interface and, if there is a gateway, a route through it.
func host(
	cfg tidepool.Config, address, gateway string, end *tidepool.PipeEnd,
) tidepool.Config {
	cfg.Interfaces = []tidepool.Interface{{Addr: prefix(address), Link: end}}
	if gateway != "" {
		cfg.Routes = []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr(gateway)}}
	}
	return cfg
}

// line starts 10.0.0.1, a router, and 10.1.0.2, joined in memory.
func line(tb testing.TB, cfg tidepool.Config) (a, router, c *tidepool.Node) {
	tb.Helper()
	ax, bx := tidepool.Pipe(0)
	by, cy := tidepool.Pipe(0)
	a = open(tb, host(cfg, "10.0.0.1/24", "10.0.0.2", ax))
	middle := cfg
	middle.Router = true
	middle.Interfaces = []tidepool.Interface{
		{Addr: prefix("10.0.0.2/24"), Link: bx}, {Addr: prefix("10.1.0.1/24"), Link: by},
	}
	router = open(tb, middle)
	return a, router, open(tb, host(cfg, "10.1.0.2/24", "10.1.0.1", cy))
}

// udpLine is line over UDP sockets of loopback.
func udpLine(tb testing.TB, cfg tidepool.Config) (a, router, c *tidepool.Node) {
	tb.Helper()
	ports, err := link.FreePorts(4)
	require.NoError(tb, err)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	face := func(address string, own int, neighbor string, theirs int) tidepool.Interface {
		return tidepool.Interface{
			Addr: prefix(address), UDP: at(own),
			Neighbors: []tidepool.Neighbor{{Addr: addr(neighbor), UDP: at(theirs)}},
		}
	}
	left, middle, right := cfg, cfg, cfg
	left.Interfaces = []tidepool.Interface{face("10.0.0.1/24", 0, "10.0.0.2", 1)}
	left.Routes = []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr("10.0.0.2")}}
	middle.Router = true
	middle.Interfaces = []tidepool.Interface{
		face("10.0.0.2/24", 1, "10.0.0.1", 0), face("10.1.0.1/24", 2, "10.1.0.2", 3),
	}
	right.Interfaces = []tidepool.Interface{face("10.1.0.2/24", 3, "10.1.0.1", 2)}
	right.Routes = []tidepool.Route{{Prefix: prefix("0.0.0.0/0"), Via: addr("10.1.0.1")}}
	return open(tb, left), open(tb, middle), open(tb, right)
}

// dial connects to a listener of the other node.
func dial(
	tb testing.TB, from, to *tidepool.Node, address string,
) (client, server *tidepool.Conn) {
	tb.Helper()
	l, err := to.ListenTCP(netip.MustParseAddrPort(address))
	require.NoError(tb, err)
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err = from.DialTCP(ctx, l.Addr().(*net.TCPAddr).AddrPort())
	require.NoError(tb, err)
	server, err = l.AcceptTCP()
	require.NoError(tb, err)
	return client, server
}
