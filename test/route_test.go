package e2e_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// provider starts three routers in a row that run RIP, and a host behind the first. The host is the
// path to all other networks, such as 203.0.113.0/24.
func provider(t *testing.T) *Network {
	t.Helper()
	return NewNetwork(t, map[string]string{
		"G": `interface if0 10.9.0.9/24 127.0.0.1:5000
interface if1 203.0.113.1/24 127.0.0.1:5008
neighbor 10.9.0.1 at 127.0.0.1:5001 via if0
route 0.0.0.0/0 via 10.9.0.1
`,
		"R1": `interface if0 10.9.0.1/24 127.0.0.1:5001
interface if1 10.1.0.1/24 127.0.0.1:5002
neighbor 10.9.0.9 at 127.0.0.1:5000 via if0
neighbor 10.1.0.2 at 127.0.0.1:5003 via if1
routing rip
rip advertise-to 10.1.0.2
route 0.0.0.0/0 via 10.9.0.9
rip originate prefix 0.0.0.0/0
`,
		"R2": `interface if0 10.1.0.2/24 127.0.0.1:5003
interface if1 10.2.0.1/24 127.0.0.1:5004
neighbor 10.1.0.1 at 127.0.0.1:5002 via if0
neighbor 10.2.0.2 at 127.0.0.1:5005 via if1
routing rip
rip advertise-to 10.1.0.1
rip advertise-to 10.2.0.2
`,
		"R3": `interface if0 10.2.0.2/24 127.0.0.1:5005
neighbor 10.2.0.1 at 127.0.0.1:5004 via if0
routing rip
rip advertise-to 10.2.0.1
`,
	}).StartAll()
}

// RIP announces an operator's default route across three routers, and withdraws it when the route's
// link goes down.
func TestDefaultRouteAcrossThreeRouters(t *testing.T) {
	t.Parallel()
	net := provider(t)
	far, r1, r3 := netip.MustParseAddr("203.0.113.1"), net.Node("R1"), net.Node("R3")
	r3.AwaitRoute(far)
	got, _ := r3.Route(far)
	assert.Equal(t, netip.MustParsePrefix("0.0.0.0/0"), got.Prefix)
	assert.Equal(t, control.OriginRIP, got.Origin)
	assert.Equal(t, 2, got.Cost)
	net.Node("G").AwaitRoute(r3.Addr())
	r3.MustDo("ping -c 3 -i 0.01 %s", far)

	t.Log("# the link to the host goes down, and the default route with it")
	r1.MustDo("down if0")
	r3.Eventually(Soon, "no default route", func() bool {
		_, ok := r3.Route(far)
		return !ok
	})
	fails(t, r3, Soon, "ping -c 1 %s", far)
	r1.MustDo("up if0")
	r3.AwaitRoute(far)
	r3.MustDo("ping -c 3 -i 0.01 %s", far)
}

// Static routes can change while the node runs.
func TestStaticRoutes(t *testing.T) {
	t.Parallel()
	net := provider(t)
	far, r2, r3 := netip.MustParseAddr("203.0.113.1"), net.Node("R2"), net.Node("R3")
	r3.AwaitRoute(far)
	net.Node("G").AwaitRoute(r3.Addr())

	t.Log("# an unreachable route hides the default route")
	r2.MustDo("route add 203.0.113.0/24 unreachable")
	r3.Eventually(Soon, "an answer from R2", func() bool {
		out, _ := r3.Do("ping -c 1 %s", far)
		return has(out, "From 10.2.0.1 icmp_seq=1 Destination Host Unreachable")
	})
	assert.True(t, has(r2.MustDo("routes"), "unreachable"))
	assert.True(t, has([]string{fails(t, r2, Soon, "route add 203.0.113.0/24 unreachable")},
		"route already exists"))
	r2.MustDo("route del 203.0.113.0/24")
	r3.MustDo("ping -c 3 -i 0.01 %s", far)

	t.Log("# a static route takes precedence over RIP's, which returns afterwards")
	r3.MustDo("route add default via 10.2.0.1 5")
	got, ok := r3.Route(far)
	require.True(t, ok)
	assert.Equal(t, control.OriginStatic, got.Origin)
	assert.Equal(t, 5, got.Cost)
	r3.MustDo("ping -c 3 -i 0.01 %s", far)
	r3.MustDo("route del default via 10.2.0.1")
	got, ok = r3.Route(far)
	require.True(t, ok)
	assert.Equal(t, control.OriginRIP, got.Origin)
	for line, text := range map[string]string{
		"route del default":                  "no such route",
		"route add 10.3.1.0/16 via 10.2.0.1": "did you mean 10.3.0.0/16?",
		"route add 10.3.0.0/16 via 10.7.0.1": "it is in no interface's network",
		"route add 10.3.0.0/16 via 10.2.0.2": "it is an address of this node",
		"route add 10.3.0.0/16 via 10.2.0.9": "it is not on if0's link",
	} {
		assert.True(t, has([]string{fails(t, r3, Soon, "%s", line)}, text), line)
	}
	r3.MustDo("ping -c 1 127.0.0.1")
}
