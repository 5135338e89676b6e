package stack

import (
	"encoding/binary"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// catching selects the packets to addresses of other hosts that the node accepts.
type catching struct {
	tcp, udp bool
	past     bool // tcp or udp was set before, so accepted connections and flows may remain
	echo     bool // echo requests are accepted
}

func (c *catching) set(flag *bool, on bool) {
	c.past = c.past || *flag
	*flag = on
}

// Catch makes the stack answer for every address. Up to limit SYNs that no listener accepts wait in
// TCP for a decision (tcp.Host.Admit, Reject, Ignore), whatever their destination. Listeners accept
// only connections to the node's own addresses. A router still forwards packets that it has a route
// for. A limit of 0 disables Catch; admitted connections stay open.
func (s *Stack) Catch(limit int) {
	s.local.catching.set(&s.local.catching.tcp, limit > 0)
	s.tcp.Catch(limit)
}

// CatchUDP is like Catch, for datagrams: up to limit flows that no socket receives wait for a
// decision (udp.Host.Admit, Dismiss, and RejectUDP).
func (s *Stack) CatchUDP(limit int) {
	s.local.catching.set(&s.local.catching.udp, limit > 0)
	s.udp.Catch(limit)
}

// Echo is an ICMP echo request to an address that is not the node's.
type Echo struct {
	Src, Dst netip.Addr
	TTL      uint8
	Rest     [4]byte // identifier and sequence number
	Body     []byte  // data of the request; valid until the function returns
}

// CatchEcho makes the stack call f with each echo request to an address of another host. If f is
// nil, such requests are dropped, or forwarded, like other packets. The node itself answers
// requests to its own addresses.
func (s *Stack) CatchEcho(f func(now clock.Time, e *Echo)) {
	s.local.catching.echo, s.icmp.caught = f != nil, f
}

// AnswerEcho sends the reply to a caught request, as if its destination had sent it.
func (s *Stack) AnswerEcho(now clock.Time, e *Echo) error {
	m := icmp.Message{Rest: e.Rest, Body: e.Body}
	_, m.Type = icmp.EchoTypes(e.Src)
	h := ip.Header{Protocol: icmpOf(e.Src), Src: e.Dst, Dst: e.Src}
	return s.out.send(now, h, m.Append(nil, h.Src, h.Dst))
}

// RejectUDP discards a waiting flow and sends its source a port unreachable (RFC 1122 §4.1.3.1).
func (s *Stack) RejectUDP(now clock.Time, f udp.Flow) {
	if packet := s.udp.Dismiss(f); packet != nil {
		i, _ := s.ifs.onLink(f.Remote.Addr())
		s.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodePort, packet)
	}
}

// catches reports whether the node accepts a packet to another host's address.
func (l *local) catches(h *ip.Header, payload []byte) bool {
	c := &l.catching
	wanted := c.tcp && h.Protocol == ip.ProtoTCP ||
		c.udp && h.Protocol == ip.ProtoUDP ||
		c.echo && asksEcho(h, payload) ||
		c.past && l.admitted(h, payload)
	if !wanted || isSpecial(h.Dst) {
		return false
	}
	if !l.ifs.router {
		return true
	}
	_, routed := l.routing.table.Hop(h.Dst)
	return !routed
}

// asksEcho reports whether a packet is an echo request, or a fragment that may be part of one.
func asksEcho(h *ip.Header, payload []byte) bool {
	if h.Protocol != icmpOf(h.Dst) || len(payload) == 0 {
		return false
	}
	request, _ := icmp.EchoTypes(h.Dst)
	return h.IsFragment() || payload[0] == request.Number()
}

// admitted reports whether a packet belongs to an admitted connection or flow.
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
