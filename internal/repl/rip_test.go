package repl

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/control"
)

// someRIP returns the state of a RIPv2 router with one route of each kind.
func someRIP() control.RIPInfo {
	prefix, from := netip.MustParsePrefix, netip.MustParseAddr("10.0.0.2")
	return control.RIPInfo{
		Dialect: "rip2", NextUpdate: 12340 * time.Millisecond,
		Timers: control.RIPTimers{
			Periodic: 10 * time.Second, Offset: 10 * time.Second / 6, Timeout: 3 * time.Minute,
			Garbage: 2 * time.Minute, TriggerMin: time.Second, TriggerMax: 5 * time.Second,
			HoldDown: time.Minute,
		},
		Interfaces: []control.RIPInterface{
			{
				Iface: "if0", Up: true, Cost: 1, Send: "rip2", Receive: "both", Auth: "hmac-sha256",
				In: 7, Out: 1234, Entries: 56789,
			},
			{Iface: "if1", Passive: true, Cost: 5, Send: "rip2", Receive: "rip2"},
		},
		Neighbors: []control.RIPNeighbor{
			{Iface: "if0", Addr: from, Silent: 1500 * time.Millisecond, Version: 2, Responses: 7, Routes: 1},
			{Iface: "if1", Addr: netip.MustParseAddr("10.1.0.2"), Configured: true, Silent: -1, Refused: 3},
		},
		Routes: []control.RIPRoute{
			{Prefix: prefix("10.0.0.0/24"), Cost: 1, Iface: "if0", Age: 75 * time.Second, Left: -1},
			{
				Prefix: prefix("10.5.0.0/16"), Cost: 3, Tag: 77, NextHop: from, From: from,
				Iface: "if0", Age: time.Second, Left: 179 * time.Second,
			},
			{Prefix: prefix("10.6.0.0/16"), Cost: 16, Age: time.Second, Left: 119 * time.Second},
			{Prefix: prefix("10.9.0.0/16"), Cost: 1, Tag: 7, Age: 3 * time.Second, Left: -1},
		},
		Messages: control.RIPMessages{
			RequestsIn: 1, ResponsesIn: 7, EntriesIn: 21, RequestsOut: 2, ResponsesOut: 1234,
			TriggeredOut: 4, EntriesOut: 56789, Expired: 1,
		},
		Refused: []control.Drop{{Reason: "wrong key", Packets: 3}},
	}
}

func TestRIPOfANodeWithoutRIP(t *testing.T) {
	assert.Equal(t, "This node does not run RIP.\n", printRIP(&control.RIPInfo{}))
	course := someRIP()
	course.Dialect, course.Timers.Offset, course.Timers.TriggerMax = "rip", 0, 0
	assert.Contains(t, printRIP(&course), "the course's RIP, IP protocol 200\nupdates every 10s, the next in 12.3s; timeout")
}

// The source address of a network is the interface's address in that network. A single address
// needs no prefix length.
func TestRoutesOfBothFamilies(t *testing.T) {
	faces := []control.Interface{{
		Name: "if0", Addr: netip.MustParsePrefix("10.0.0.2/24"),
		IPv6: []netip.Prefix{netip.MustParsePrefix("2001:db8::2/64"), netip.MustParsePrefix("2001:db8:1::2/32")},
	}}
	var list []control.Route
	for _, p := range []string{"10.0.0.0/24", "2001:db8::/64", "2001:db8::/32"} {
		list = append(list, control.Route{Prefix: netip.MustParsePrefix(p), Iface: "if0", Origin: control.OriginLocal})
	}
	list = append(list, control.Route{
		Prefix: netip.MustParsePrefix("2001:db8:9::1/128"), Iface: "if0", Origin: control.OriginRIP,
		NextHop: netip.MustParseAddr("fe80::1"), Cost: 2,
	})
	assert.Equal(t, "10.0.0.0/24 dev if0 proto kernel scope link src 10.0.0.2\n"+
		"2001:db8::/64 dev if0 proto kernel scope link src 2001:db8::2\n"+
		"2001:db8::/32 dev if0 proto kernel scope link src 2001:db8:1::2\n"+
		"2001:db8:9::1 via fe80::1 dev if0 proto rip metric 2\n", fieldRoutes(list, faces))
}
