package node

import (
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/tcp"
)

// tcpCounted answers control.TCPCounters. The loop's.
func (n *Node) tcpCounted() control.TCPCounted {
	host := n.stack.TCP()
	c, drops := host.Counters(), host.Drops()
	a := control.TCPCounted{
		SegmentsIn: c.SegmentsIn, SegmentsOut: c.SegmentsOut, Retransmits: c.Retransmits,
		Timeouts: c.Timeouts, Opened: c.Opened, Refused: c.Refused,
		ChallengeAcks: c.ChallengeAcks, CookiesSent: c.CookiesSent,
		CookiesAccepted: c.CookiesAccepted, CookiesFailed: c.CookiesFailed,
		Drops: []control.Drop{},
	}
	for conn := range n.conns {
		if s := conn.tc.State(); s == tcp.StateEstablished || s == tcp.StateCloseWait {
			a.Established++
		}
	}
	for reason, count := range drops {
		if count > 0 {
			a.Drops = append(a.Drops, control.Drop{
				Reason: tcp.Drop(reason).String(), Packets: count,
			})
		}
	}
	return a
}
