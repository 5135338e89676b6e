package stack

import (
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/icmp"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/tcp"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// local delivers packets for this node to its protocols, and joins TCP segments to trains.
type local struct {
	ifs     *Interfaces
	routing *Routing
	fwd     *forwarder
	icmp    *icmpHost
	rips    []*RIP
	probers *Probers
	raws    *Raws
	ports   *Ports
	events  *events
	tcp     *tcp.Host
	udp     *udp.Host
	in      *incoming

	fragments *ip.Reassembler
	catching  catching
	guest     func(checked bool, packet []byte) // nil: none
	gathering tcp.Segment                       // the train that is being gathered
	gathered  bool
	payload   [][]byte // the train's pieces, reused
}

// accept passes a packet to its protocol, other than TCP. raw says that a raw socket has received
// the packet. If accept drops the packet, it sends the ICMP error, if any, and returns the reason.
func (l *local) accept(
	now clock.Time, i int, h *ip.Header, b, payload []byte, raw bool,
) ip.DropReason {
	switch {
	case h.Protocol == ip.ProtoUDP:
		return l.datagram(now, i, h, b, payload)
	case h.Protocol == icmpOf(h.Dst):
		return l.icmp.input(now, i, h, b, payload)
	case h.Protocol == ip.ProtoIGMP && !h.Is6():
		return l.icmp.discovery.inputIGMP(now, i, h, payload)
	case h.Protocol == ip.ProtoTest && !h.Is6():
		l.events.add(Event{Test: &TestPacket{
			Src: h.Src, Dst: h.Dst,
			TTL: int(h.TTL), Data: append([]byte(nil), payload...),
		}})
	case h.Protocol == ip.ProtoRIP && !h.Is6():
		return l.inputCourse(now, i, h, payload)
	default:
		if raw {
			return ip.DropNone
		}
		l.icmp.reportError(now, i, icmp.TypeUnreachable, icmp.CodeProtocol, b)
		return ip.DropProtocol
	}
	return ip.DropNone
}
