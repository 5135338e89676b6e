package e2e_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two links of the old grammar connect two routers, over one socket each. When one link is down,
// the router assigns packets in transit on the other link correctly.
func TestOneOfTwoLinksDown(t *testing.T) {
	t.Parallel()
	net := NewNetwork(t, map[string]string{
		"A": "localhost 5000\nlocalhost 5001 10.0.0.1 10.0.0.2\n",
		"B": "localhost 5001\nlocalhost 5000 10.0.0.2 10.0.0.1\n" +
			"localhost 5002 10.1.0.1 10.1.0.2\nlocalhost 5002 10.2.0.1 10.2.0.2\n",
		"C": "localhost 5002\nlocalhost 5001 10.1.0.2 10.1.0.1\n" +
			"localhost 5001 10.2.0.2 10.2.0.1\nlocalhost 5003 10.3.0.1 10.3.0.2\n",
		"D": "localhost 5003\nlocalhost 5002 10.3.0.2 10.3.0.1\n",
	}).StartAll()
	a, b, c := net.Node("A"), net.Node("B"), net.Node("C")
	far := netip.MustParseAddr("10.3.0.2")
	for _, down := range []string{"0", "1"} {
		c.MustDo("down %s", down)
		next := map[string]string{"0": "10.2.0.2", "1": "10.1.0.2"}[down]
		b.Eventually(Soon, "path by "+next, func() bool {
			r, ok := b.Route(far)
			return ok && r.NextHop == netip.MustParseAddr(next)
		})
		a.AwaitRoute(far)
		// The replies also need routes: C learns none from a link until B sends an update on that
		// link.
		for _, n := range []*Node{c, net.Node("D")} {
			n.AwaitRoute(netip.MustParseAddr("10.0.0.1"))
		}
		out := a.MustDo("ping -c 3 -i 0.01 %s", far)
		require.NotEmpty(t, out)
		c.MustDo("up %s", down)
	}
}
