// Package operatortest starts nodes with their services for the tests of other packages.
package operatortest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator"
)

// Start opens the node of a file until the end of the test.
func Start(tb testing.TB, cfg node.Config, file *lnx.Config) *operator.Node {
	tb.Helper()
	return Open(tb, operator.Config{LNX: file, Node: cfg})
}

// Open is like Start, with a whole configuration.
func Open(tb testing.TB, cfg operator.Config) *operator.Node {
	tb.Helper()
	n, err := operator.Open(cfg)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, n.Close()) })
	return n
}

// Two starts two nodes on one link: 10.0.0.1 and 10.0.0.2.
func Two(tb testing.TB, cfg node.Config) (a, b *operator.Node) {
	tb.Helper()
	fa, fb := testenv.TwoNodes(tb)
	return Start(tb, cfg, fa), Start(tb, cfg, fb)
}

// TwoIPv6 starts 2001:db8::1 and 2001:db8::2 on one link, without IPv4.
func TwoIPv6(tb testing.TB, cfg node.Config) (a, b *operator.Node) {
	tb.Helper()
	fa, fb := testenv.TwoNodes(tb)
	six := func(p netip.Addr) netip.Addr {
		return netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: p.As4()[3]})
	}
	for _, c := range []*lnx.Config{fa, fb} {
		f := &c.Interfaces[0]
		f.IPv6, f.Addr = []netip.Prefix{netip.PrefixFrom(six(f.Addr.Addr()), 64)}, netip.Prefix{}
		c.Neighbors[0].Addr = six(c.Neighbors[0].Addr)
	}
	return Start(tb, cfg, fa), Start(tb, cfg, fb)
}

// Three starts A - B - C: the host 10.0.0.1, a router, and the host 10.1.0.2.
func Three(tb testing.TB, cfg node.Config) (a, b, c *operator.Node) {
	tb.Helper()
	fa, fb, fc := testenv.ThreeNodes(tb)
	return Start(tb, cfg, fa), Start(tb, cfg, fb), Start(tb, cfg, fc)
}

// Second is the address of the second node of Two.
var Second = netip.MustParseAddr("10.0.0.2")

// NoSockets waits until a node has only listeners and connections in TIME-WAIT.
func NoSockets(tb testing.TB, n *operator.Node) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		for _, s := range testenv.Ask(tb, n, control.Sockets{}) {
			if s.State != "LISTEN" && s.State != "TIME_WAIT" {
				return false
			}
		}
		return len(testenv.Ask(tb, n, control.RCPSockets{})) == 0
	}, time.Minute, 10*time.Millisecond)
}

// Connect opens a connection between two nodes.
func Connect(tb testing.TB, from, to *operator.Node, addr string) (client, server *node.Conn) {
	tb.Helper()
	at := netip.MustParseAddrPort(addr)
	l, err := to.Node.TCP.Listen(at, 0)
	require.NoError(tb, err)
	defer l.Close()
	client, err = from.Node.TCP.Dial(tb.Context(), at)
	require.NoError(tb, err)
	server, err = l.AcceptTCP()
	require.NoError(tb, err)
	return client, server
}
