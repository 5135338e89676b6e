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
	s.catching.set(&s.catching.tcp, limit > 0)
	s.tcp.Catch(limit)
}

// CatchUDP is Catch for datagrams: those of up to limit flows that no socket is for
// wait for a decision (udp.Host.Admit, Dismiss, and RejectUDP).
func (s *Stack) CatchUDP(limit int) {
	s.catching.set(&s.catching.udp, limit > 0)
	s.udp.Catch(limit)
}

// RejectUDP forgets a flow that waits, and tells its sender that nobody listens
// (RFC 1122 §4.1.3.1).
func (s *Stack) RejectUDP(now clock.Time, f udp.Flow) {
	if packet := s.udp.Dismiss(f); packet != nil {
		s.reportError(now, icmp.TypeUnreachable, icmp.CodePort, packet)
	}
}

// catches reports whether a packet for another's address is delivered here.
func (s *Stack) catches(h *ip.Header, payload []byte) bool {
	c := &s.catching
	wanted := c.tcp && h.Protocol == ip.ProtoTCP ||
		c.udp && h.Protocol == ip.ProtoUDP ||
		c.past && s.admitted(h, payload)
	if !wanted || special(h.Dst) {
		return false
	}
	if !s.cfg.Forwarding {
		return true
	}
	_, routed := s.routes.Hop(h.Dst)
	return !routed
}

// admitted reports whether a packet is of a connection or flow of the node's.
func (s *Stack) admitted(h *ip.Header, payload []byte) bool {
	if h.IsFragment() || len(payload) < 4 {
		return false
	}
	t := tcp.Tuple{
		LocalAddr: h.Dst, LocalPort: binary.BigEndian.Uint16(payload[2:]),
		RemoteAddr: h.Src, RemotePort: binary.BigEndian.Uint16(payload),
	}
	switch h.Protocol {
	case ip.ProtoTCP:
		return s.tcp.Knows(t)
	case ip.ProtoUDP:
		return s.udp.Admitted(udp.Flow{Local: t.Local(), Remote: t.Remote()})
	}
	return false
}

// foreign reports whether a packet that came by interface i is delivered here though it
// is for another's address.
func (s *Stack) foreign(i int, dst ip.Addr) bool {
	c := &s.catching
	return (c.tcp || c.udp || c.past) && !s.isOurs(i, dst)
}

// special reports whether an address is that of no host, or of the host itself
// (RFC 1122 §3.2.1.3).
func special(a ip.Addr) bool { return a[0] >= 224 || a[0] == 127 || a[0] == 0 }

// all reports whether an address is for everybody on the link of interface i: its
// broadcast, or what 4.2BSD took for that.
func (s *Stack) all(i int, a ip.Addr) bool {
	in := &s.interfaces[i]
	mask, ok := in.hosts()
	host := be32(a) & mask
	return ok && be32(a)&^mask == be32(in.addr)&^mask && (host == 0 || host == mask)
}

// isPeer reports whether an address that came by interface i can be one end of a
// connection.
func (s *Stack) isPeer(i int, a ip.Addr) bool {
	if !special(a) && !s.all(i, a) {
		return true // the usual case: no table is asked
	}
	_, self := s.own[a]
	return self || s.in.self && loopback(a)
}
