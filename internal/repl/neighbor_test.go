package repl

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Addresses and neighbors on a link with neighbor discovery have states and no counters.
func TestPrintNeighborDiscovery(t *testing.T) {
	list := []control.Neighbor{{
		Iface: "tun0", Addr: netip.MustParseAddr("fe80::2"), UDP: "tun:tide0", Heard: -1,
		State: control.NeighborStale,
	}}
	assert.Equal(t, "Iface          VIP          UDPAddr  State  Since  Heard    In   Out\n"+
		" tun0      fe80::2        tun:tide0  stale      -      -     -     -\n", printNeighbors(list, true))
	assert.Equal(t, "Iface          VIP          UDPAddr\n tun0      fe80::2        tun:tide0\n", printNeighbors(list, false))
	one, two := netip.MustParsePrefix("fe80::1/64"), netip.MustParsePrefix("2001:db8::7/64")
	text := briefInterfaces([]control.Interface{{
		Name: "tun0", IPv6: []netip.Prefix{one, two}, Up: true, UDP: "tun:tide0", Offload: "tun",
		Addresses: []control.Address{
			{Prefix: one, State: "preferred"},
			{Prefix: two, State: "deprecated", Valid: 90 * time.Minute},
		},
	}}, 1)
	assert.Contains(t, text, "    fe80::1/64 preferred\n"+
		"    2001:db8::7/64 deprecated dynamic, valid 1h30m0s, preferred 0s\n")
}

func TestPrintNeighbors(t *testing.T) {
	list := []control.Neighbor{
		{
			Iface: "if0", Addr: netip.MustParseAddr("192.168.100.102"), UDP: "127.0.0.1:50001",
			State: control.NeighborUp, Since: 90 * time.Second, Heard: 300 * time.Millisecond, In: 120, Out: 7,
		},
		{
			Iface: "if1", Addr: netip.MustParseAddr("10.1.0.2"), UDP: "127.0.0.1:5002",
			State: control.NeighborRefused, Since: 5 * time.Hour, Heard: -1, Out: 9, Line: "A.lnx:5",
		},
		{
			Iface: "if2", Addr: netip.MustParseAddr("10.2.0.2"), UDP: "nowhere.example:5002",
			State: control.NeighborUnresolved, Since: 0, Heard: -1, Problem: "host nowhere.example: no such host",
		},
		{Iface: "tun0", Addr: netip.MustParseAddr("10.8.0.2"), UDP: "tun:tun0", Heard: -1},
	}
	want := `Iface              VIP               UDPAddr       State  Since  Heard    In   Out
  if0  192.168.100.102       127.0.0.1:50001          up    90s   0.3s   120     7
  if1         10.1.0.2        127.0.0.1:5002     refused     5h  never     0     9
  if2         10.2.0.2  nowhere.example:5002  unresolved   0.0s  never     0     0
 tun0         10.8.0.2              tun:tun0           -      -      -     -     -
    10.1.0.2 is refused for 5h: its UDP port is closed (A.lnx:5)
    10.2.0.2 is unresolved for 0.0s: host nowhere.example: no such host
`
	assert.Equal(t, want, printNeighbors(list, true))
	assert.Equal(t, "Iface          VIP          UDPAddr\n  if1     10.1.0.2   127.0.0.1:5002\n"+
		"    10.1.0.2 is refused for 5h: its UDP port is closed (A.lnx:5)\n", printNeighbors(list[1:2], false))
	for d, want := range map[time.Duration]string{
		0: "0.0s", 9900 * time.Millisecond: "9.9s", 119 * time.Second: "119s", 3 * time.Minute: "3m",
		47 * time.Hour: "47h", 72 * time.Hour: "3d",
	} {
		assert.Equal(t, want, ago(d))
	}
}

func TestNeighborEvents(t *testing.T) {
	nb := control.Neighbor{Iface: "if0", Addr: netip.MustParseAddr("10.0.0.2"), UDP: "127.0.0.1:5001"}
	nb.Line = "A.lnx:3"
	for state, want := range map[control.NeighborState]string{
		control.NeighborUp:          "is back after 12s of being refused",
		control.NeighborRefused:     "is unreachable: its UDP port is closed (A.lnx:3). Is the node up?",
		control.NeighborSilent:      "is silent: it does not answer (A.lnx:3)",
		control.NeighborUnreachable: "is unreachable: why (A.lnx:3)",
		control.NeighborUnresolved:  "has no address yet: why (A.lnx:3)",
		control.NeighborUnknown:     "is unknown: why (A.lnx:3)",
	} {
		nb.State, nb.Problem = state, "why"
		e := control.NeighborChanged{Neighbor: nb, Was: control.NeighborRefused, For: 12 * time.Second}
		assert.Equal(t, "Neighbor 10.0.0.2 (127.0.0.1:5001 via if0) "+want, neighborNews(&e))
	}
	nb.State = control.NeighborUp
	assert.Equal(t, "Neighbor 10.0.0.2 (127.0.0.1:5001 via if0) is up",
		neighborNews(&control.NeighborChanged{Neighbor: nb, First: true}))
	moved := neighborNews(&control.NeighborChanged{Neighbor: nb, From: "127.0.0.9:1"})
	assert.Equal(t, "Neighbor 10.0.0.2 (127.0.0.1:5001 via if0) has moved from 127.0.0.9:1", moved)
}
