package stack

import (
	"encoding/binary"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// catching is whose packets for others' addresses are the node's.
type catching struct {
	tcp, udp bool
	past     bool // one of them was: what was accepted then goes on
}

func (c *catching) set(which *bool, on bool) {
	c.past = c.past || *which
	*which = on
}

// Catch makes the stack answer for every address: up to limit SYNs that nobody
// listens for, whoever they are for, wait in TCP for a decision (tcp.Host.Admit,
// Reject, Ignore). A listener takes only what is for the node's own addresses. A router
// still passes on what it has a route for. Zero ends it, but not for connections that
// were admitted.
func (s *Stack) Catch(limit int) {
	s.local.catching.set(&s.local.catching.tcp, limit > 0)
	s.tcp.Catch(limit)
}

// CatchUDP is Catch for datagrams: those of up to limit flows that no socket is for
// wait for a decision (udp.Host.Admit, Dismiss, and RejectUDP).
func (s *Stack) CatchUDP(limit int) {
	s.local.catching.set(&s.local.catching.udp, limit > 0)
	s.udp.Catch(limit)
}

// RejectUDP forgets a flow that waits, and tells its sender that nobody listens
// (RFC 1122 §4.1.3.1).
func (s *Stack) RejectUDP(now clock.Time, f udp.Flow) {
	if packet := s.udp.Dismiss(f); packet != nil {
		s.icmp.reportError(now, icmp.TypeUnreachable, icmp.CodePort, packet)
	}
}

// catches reports whether a packet for another's address is delivered here.
func (l *local) catches(h *ip.Header, payload []byte) bool {
	c := &l.catching
	wanted := c.tcp && h.Protocol == ip.ProtoTCP ||
		c.udp && h.Protocol == ip.ProtoUDP ||
		c.past && l.admitted(h, payload)
	if !wanted || special(h.Dst) {
		return false
	}
	if !l.routing.forwards {
		return true
	}
	_, routed := l.routing.table.Hop(h.Dst)
	return !routed
}

// admitted reports whether a packet is of a connection or flow of the node's.
func (l *local) admitted(h *ip.Header, payload []byte) bool {
	if h.IsFragment() || len(payload) < 4 {
		return false
	}
	t := tcp.Tuple{
		LocalAddr: h.Dst, LocalPort: binary.BigEndian.Uint16(payload[2:]),
		RemoteAddr: h.Src, RemotePort: binary.BigEndian.Uint16(payload),
	}
	switch h.Protocol {
	case ip.ProtoTCP:
		return l.tcp.Knows(t)
	case ip.ProtoUDP:
		return l.udp.Admitted(udp.Flow{Local: t.Local(), Remote: t.Remote()})
	}
	return false
}

// foreign reports whether a packet that came by interface i is delivered here though it
// is for another's address.
func (l *local) foreign(i int, dst ip.Addr) bool {
	c := &l.catching
	return (c.tcp || c.udp || c.past) && !l.ifs.isOurs(i, dst)
}
