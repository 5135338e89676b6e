package e2e_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
)

// ask runs a command with --json and decodes the list that it prints.
func ask[T any](n *Node, command string) []T {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	mark := n.out.mark()
	n.Command("%s --json", command)
	isList := func(text string) bool { return strings.HasPrefix(text, "[") }
	text, ok := n.out.await(mark, Soon, isList)
	if !ok {
		n.t.Fatalf("node %s did not answer %q", n.Name, command)
	}
	var list []T
	require.NoError(n.t, json.Unmarshal([]byte(text), &list), "%s: %s", command, text)
	return list
}

// Interfaces returns the node's interfaces.
func (n *Node) Interfaces() []control.Interface {
	n.t.Helper()
	return ask[control.Interface](n, "interfaces")
}

// Routes returns the node's routes.
func (n *Node) Routes() []control.Route {
	n.t.Helper()
	return ask[control.Route](n, "routes")
}

// Neighbors returns the node's neighbors.
func (n *Node) Neighbors() []control.Neighbor {
	n.t.Helper()
	return ask[control.Neighbor](n, "neighbors")
}

// Sockets returns the node's sockets with all details.
func (n *Node) Sockets() []control.Socket {
	n.t.Helper()
	return ask[control.Socket](n, "sockets -i")
}

// Addr returns the first virtual address of the first interface.
func (n *Node) Addr() netip.Addr {
	n.t.Helper()
	return n.Addrs()[0]
}

// Addrs returns the virtual addresses of the first interface, without the link-local one: at most
// one of each family.
func (n *Node) Addrs() []netip.Addr {
	n.t.Helper()
	if n.addrs == nil {
		ifaces := n.Interfaces()
		require.NotEmpty(n.t, ifaces)
		for _, p := range ifaces[0].Addrs() {
			if !p.Addr().IsLinkLocalUnicast() {
				n.addrs = append(n.addrs, p.Addr())
			}
		}
		require.NotEmpty(n.t, n.addrs)
	}
	return n.addrs
}

// Dropped returns the drops of all interfaces and directions, by reason.
func (n *Node) Dropped() map[string]uint64 {
	n.t.Helper()
	sums := map[string]uint64{}
	for _, i := range n.Interfaces() {
		for _, d := range append(i.In.Drops, i.Out.Drops...) {
			sums[d.Reason] += d.Packets
		}
	}
	return sums
}

// Route returns the route that leads to an address.
func (n *Node) Route(to netip.Addr) (best control.Route, ok bool) {
	n.t.Helper()
	for _, r := range n.Routes() {
		if r.Prefix.Contains(to) && (!ok || r.Prefix.Bits() > best.Prefix.Bits()) {
			best, ok = r, true
		}
	}
	return best, ok
}

// AwaitRoute waits for a route to an address.
func (n *Node) AwaitRoute(to netip.Addr) {
	n.t.Helper()
	n.Eventually(Soon, "a route to "+to.String(), func() bool {
		_, ok := n.Route(to)
		return ok
	})
}

// Eventually repeats a check until it holds.
func (n *Node) Eventually(within time.Duration, what string, condition func() bool) {
	n.t.Helper()
	over := time.NewTimer(within)
	defer over.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-over.C:
			n.t.Fatalf("node %s: no %s within %v", n.Name, what, within)
		}
	}
}
