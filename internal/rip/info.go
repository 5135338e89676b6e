package rip

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Info is a snapshot of a Speaker.
type Info struct {
	Dialect    Dialect
	Timers     Timers
	NextUpdate time.Duration // time until the next full update
	Counters   Counters
	Refused    []Refused
	Interfaces []InterfaceInfo
	Neighbors  []NeighborInfo
	Routes     []RouteInfo
}

// InterfaceInfo is the state of RIP on one interface.
type InterfaceInfo struct {
	Iface         int
	Up, Passive   bool
	Cost          int
	Send, Receive string // modes of RIPv2
	Auth          string // algorithm of the signing key; may be empty
	// Received counts accepted messages. Sent counts responses, and SentEntries counts the entries
	// in them.
	Received, Sent, SentEntries uint64
}

// NeighborInfo is the state of a router that is configured, or that has sent a message.
type NeighborInfo struct {
	Neighbor
	Configured bool
	Silent     time.Duration // time since the last message; negative: no message
	Version    uint8         // version of the last message; 0 in the course's dialect
	Requests   uint64        // accepted requests; in RIPv2 only authenticated ones
	Responses  uint64        // accepted responses
	Refused    uint64
	Routes     int // number of routes through this router
}

// RouteInfo is the state of a route.
type RouteInfo struct {
	Prefix  netip.Prefix
	Cost    int
	Tag     uint16
	NextHop netip.Addr    // next hop; zero if directly connected or unreachable
	From    netip.Addr    // router that announced the route; zero: no router
	Iface   int           // outgoing interface; -1: no interface
	Age     time.Duration // time since the last refresh or change
	Left    time.Duration // time until expiry or deletion; negative: never
	Changed time.Duration // time since the last change
}

// Info returns a snapshot.
func (s *Speaker) Info(now clock.Time) Info {
	info := Info{
		Dialect: s.cfg.Dialect, Timers: s.cfg.Timers, Counters: s.Counters(),
		Refused: s.Refused(), NextUpdate: -1,
	}
	if s.periodic != clock.Never {
		info.NextUpdate = s.periodic.Sub(now)
	}
	for i, p := range s.ports {
		f := InterfaceInfo{
			Iface: i, Up: p.up, Passive: p.Passive, Cost: p.Cost,
			Received: p.received, Sent: p.sent, SentEntries: p.sentEntries,
		}
		if s.cfg.Dialect == RIPv2 {
			f.Send, f.Receive = p.Send.String(), p.Receive.String()
		}
		if len(p.Keys) > 0 {
			f.Auth = p.Keys[0].Algorithm.String()
		}
		info.Interfaces = append(info.Interfaces, f)
	}
	for _, g := range s.gateways {
		info.Neighbors = append(info.Neighbors, g.info(now))
	}
	slices.SortFunc(info.Neighbors, func(a, b NeighborInfo) int {
		return cmp.Or(cmp.Compare(a.Iface, b.Iface), a.Addr.Compare(b.Addr))
	})
	for _, r := range s.table.sorted() {
		info.Routes = append(info.Routes, s.routeInfo(r, now))
	}
	return info
}

func (g *gateway) info(now clock.Time) NeighborInfo {
	n := NeighborInfo{
		Neighbor: g.Neighbor, Configured: g.configured, Silent: -1, Version: g.version,
		Requests: g.requests, Responses: g.responses, Refused: g.refused, Routes: g.routes,
	}
	if g.lastUpdate != clock.Never {
		n.Silent = now.Sub(g.lastUpdate)
	}
	return n
}

func (s *Speaker) routeInfo(r *route, now clock.Time) RouteInfo {
	info := RouteInfo{
		Prefix: r.prefix, Cost: r.cost, Tag: r.tag, NextHop: r.hop, Iface: -1,
		Left: -1, Changed: now.Sub(r.changedAt),
	}
	info.Age = info.Changed
	if r.due != clock.Never {
		info.Left = r.due.Sub(now)
	}
	switch {
	case r.via != nil:
		info.From, info.Iface = r.via.Addr, r.via.Iface
		info.Age = s.cfg.Timeout - info.Left
	case r.isOwn():
		info.Iface = r.own[0].iface
	}
	return info
}
