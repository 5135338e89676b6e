package nat

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Info is the state and the counters of a NAT.
type Info struct {
	Sessions, Mappings, Hosts int
	Held                      int    // SYNs from outside that are held before they are refused
	Created                   uint64 // sessions created
	Expired                   uint64 // sessions that expired
	Evicted                   uint64 // unconfirmed sessions from outside that were evicted
	Refused                   uint64 // packets of new sessions that were refused because of a limit
	Filtered                  uint64 // packets from outside that the filter dropped
	Outbound, Inbound         uint64 // packets translated in each direction
}

// Info returns the state and the counters.
func (n *NAT) Info() Info {
	i := n.info
	i.Sessions, i.Hosts, i.Held = len(n.insideSessions), len(n.hosts), len(n.held)
	i.Mappings = len(n.ports)
	i.Outbound, i.Inbound = n.packets[outbound], n.packets[inbound]
	return i
}

// Session describes a session.
type Session struct {
	Protocol          uint8
	Inside            netip.AddrPort // inside endpoint; for ICMP the port is the identifier
	Outside           netip.AddrPort
	Remote            netip.AddrPort
	State             string // "unconfirmed", "open", "opening", "closing"
	Forward           bool   // the session uses a port forward
	Left              time.Duration
	Outbound, Inbound uint64 // packets in each direction
}

// Sessions lists at most limit sessions, in the order of inside and remote endpoints.
func (n *NAT) Sessions(now clock.Time, limit int) []Session {
	list := make([]Session, 0, min(limit, len(n.insideSessions)))
	for c := range n.queues {
		q := &n.queues[c]
		for s := q.last; s != nil && len(list) < limit; s = s.prev {
			list = append(list, Session{
				Protocol: s.protocol, Inside: s.inside.addrPort(),
				Outside: endpoint{n.outside, s.port}.addrPort(), Remote: s.remote.addrPort(),
				State: s.state(), Forward: s.forward,
				Left:     max(0, s.used.Add(q.timeout).Sub(now)),
				Outbound: s.packets[outbound], Inbound: s.packets[inbound],
			})
		}
	}
	slices.SortFunc(list, func(a, b Session) int {
		return cmp.Or(a.Inside.Compare(b.Inside), cmp.Compare(a.Protocol, b.Protocol),
			a.Remote.Compare(b.Remote))
	})
	return list
}

func (s *session) state() string {
	switch {
	case s.class == unconfirmed:
		return "unconfirmed"
	case s.reset || s.closed[0] && s.closed[1]:
		return "closing"
	case s.class == transitory:
		return "opening"
	}
	return "open"
}
