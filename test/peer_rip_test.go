package e2e_test

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/test/internal/peer"
)

var (
	oldOurs   = netip.MustParseAddr("192.168.0.1")
	oldTheirs = netip.MustParseAddr("192.168.0.2")
	far       = netip.MustParsePrefix("192.168.7.7/32")
)

// startOldGrammar is startWithPeer for a file of an old grammar: the node is the middle of a line
// of three whose ends are wires.
func startOldGrammar(t *testing.T, form string) (*Node, *peer.Wire, *peer.Wire) {
	t.Helper()
	at := testenv.FreePort(t)
	left, right := peer.Listen(t, 0, at), peer.Listen(t, 0, at)
	text := fmt.Sprintf(form, at, left.Port(), right.Port())
	file := t.TempDir() + "/node.lnx"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return Start(t, file), left, right
}

const (
	form2013 = `localhost:%d
127.0.0.1:%d 192.168.0.1 192.168.0.2
127.0.0.1:%d 192.168.0.3 192.168.0.4
`
	form2018 = `localhost %d
127.0.0.1 %d 192.168.0.1 192.168.0.2
127.0.0.1 %d 192.168.0.3 192.168.0.4
`
)

// A node understands RIP with 8-byte entries and answers in the same format.
func TestRIPWithEntriesOf8Bytes(t *testing.T) {
	for name, form := range map[string]string{"2013": form2013, "2018": form2018} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, left, right := startOldGrammar(t, form)
			t.Log("# the node sends a request at start")
			left.AwaitRIP(t, Soon, "request", func(m peer.RIP) bool {
				return m.Command == peer.RIPRequest
			})
			t.Log("# we announce a destination, in 8 bytes")
			left.SendRIP(oldTheirs, oldOurs, peer.RIP{
				Command: peer.RIPResponse, Width: 8, Entries: []peer.RIPEntry{{Cost: 2, Dst: far}},
			})
			n.AwaitRoute(far.Addr())
			r, _ := n.Route(far.Addr())
			assert.Equal(t, control.Route{
				Origin: control.OriginRIP, Prefix: far, NextHop: oldTheirs, Iface: "if0", Cost: 3,
			}, r)

			t.Log("# the node poisons it back to us, and announces it")
			m := left.AwaitRIP(t, Soon, "poisoned reverse in 8 bytes", func(m peer.RIP) bool {
				cost, ok := m.Cost(far)
				return ok && cost == peer.RIPInfinity && m.Width == 8
			})
			assert.Equal(t, peer.RIPResponse, m.Command)
			right.AwaitRIP(t, Soon, "the route for the other side", func(m peer.RIP) bool {
				cost, ok := m.Cost(far)
				return ok && cost == 3
			})

			t.Log("# a request is answered with the whole table, in 8 bytes")
			left.SendRIP(oldTheirs, oldOurs, peer.RIP{Command: peer.RIPRequest, Width: 8})
			left.AwaitRIP(t, Soon, "own addresses", func(m peer.RIP) bool {
				own, ok := m.Cost(netip.PrefixFrom(oldOurs, 32))
				other, okOther := m.Cost(netip.MustParsePrefix("192.168.0.3/32"))
				return m.Width == 8 && ok && okOther && own == 0 && other == 0
			})

			t.Log("# after we withdraw it, both sides lose it at once")
			left.SendRIP(oldTheirs, oldOurs, peer.RIP{
				Command: peer.RIPResponse, Width: 8, Entries: []peer.RIPEntry{{Cost: 16, Dst: far}},
			})
			right.AwaitRIP(t, 3*time.Second, "withdrawal", func(m peer.RIP) bool {
				cost, ok := m.Cost(far)
				return ok && cost == peer.RIPInfinity
			})
			_, there := n.Route(far.Addr())
			assert.False(t, there)
		})
	}
}

// A route without updates expires. The file sets short timers.
func TestRouteExpires(t *testing.T) {
	t.Parallel()
	n, wire := startWithPeer(t, "routing rip", fmt.Sprintf("rip advertise-to %v", theirs),
		"rip periodic-update-rate 200", "rip route-timeout-threshold 1000")
	network := netip.MustParsePrefix("10.5.0.0/16")
	wire.SendRIP(theirs, ours, peer.RIP{
		Command: peer.RIPResponse, Width: 12, Entries: []peer.RIPEntry{{Cost: 0, Dst: network}},
	})
	n.AwaitRoute(netip.MustParseAddr("10.5.1.1"))
	learned := time.Now()
	n.Eventually(Soon, "end of the route", func() bool {
		_, there := n.Route(netip.MustParseAddr("10.5.1.1"))
		return !there
	})
	assert.Greater(t, time.Since(learned), 700*time.Millisecond)
	wire.AwaitRIP(t, Soon, "the withdrawn network announced as unreachable", func(m peer.RIP) bool {
		cost, ok := m.Cost(network)
		return ok && cost == peer.RIPInfinity
	})
	t.Log("# the periodic updates still announce our network")
	for range 3 {
		wire.AwaitRIP(t, Soon, "update", func(m peer.RIP) bool {
			cost, ok := m.Cost(netip.MustParsePrefix("10.0.0.0/24"))
			return ok && cost == 0
		})
	}
}

// A node accepts RIP only from neighbors that its file names in `rip advertise-to`.
func TestRIPOnlyWithConfiguredNeighbors(t *testing.T) {
	t.Parallel()
	n, wire := startWithPeer(t, "routing rip")
	wire.SendRIP(theirs, ours, peer.RIP{
		Command: peer.RIPResponse, Width: 12,
		Entries: []peer.RIPEntry{{Cost: 0, Dst: netip.MustParsePrefix("10.5.0.0/16")}},
	})
	n.Eventually(Soon, "counted drop", func() bool { return len(n.Dropped()) > 0 })
	_, there := n.Route(netip.MustParseAddr("10.5.1.1"))
	assert.False(t, there)
}
