package stack

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Raw hears every packet of a protocol that is for this node, beside whatever else
// becomes of it. Where nothing else does, nobody is told that there is no such protocol.
type Raw struct {
	Protocol uint8
	// Local is the address that packets must be for; invalid: any.
	Local netip.Addr
	// Hear is called with the sender and what is behind the IP header, which is lent
	// for the call.
	Hear func(from netip.Addr, payload []byte)
}

// Raws are the raw sockets.
type Raws struct {
	ifs  *Interfaces
	out  *sender
	list []*Raw
}

// maxRaws bounds the raw sockets of a stack.
const maxRaws = 64

// Open has r hear packets until Close.
func (rs *Raws) Open(r *Raw) error {
	if r.Local.IsValid() {
		if _, own := rs.ifs.self(r.Local.As4()); !own {
			return ErrNotOurs
		}
	}
	if len(rs.list) >= maxRaws {
		return ErrTooMany
	}
	rs.list = append(rs.list, r)
	return nil
}

// Close ends what Open began.
func (rs *Raws) Close(r *Raw) {
	rs.list = slices.DeleteFunc(rs.list, func(q *Raw) bool { return q == r })
}

// RawPacket is what a raw socket sends.
type RawPacket struct {
	Protocol uint8
	Src, Dst netip.Addr // Src invalid: that of the way out
	TTL, TOS uint8      // TTL 0: the host's own
	DF       bool
	Payload  []byte
}

// Send sends a packet of any protocol. Its payload is sent as it is: no checksum is
// filled in.
func (rs *Raws) Send(now clock.Time, p *RawPacket) error {
	if rs.out.bytes >= maxQueuedBytes/2 {
		return ErrQueueFull
	}
	h := ip.Header{
		Protocol: p.Protocol, TTL: p.TTL, TOS: p.TOS, DF: p.DF, Dst: p.Dst.As4(),
	}
	if h.TTL == 0 {
		h.TTL = defaultTTL
	}
	if p.Src.IsValid() {
		h.Src = p.Src.As4()
	}
	return rs.out.send(now, h, p.Payload)
}

// hear shows a packet to the raw sockets of its protocol, and reports whether there
// is one.
func (rs *Raws) hear(h *ip.Header, payload []byte) (heard bool) {
	for _, r := range rs.list {
		if r.Protocol == h.Protocol && (!r.Local.IsValid() || r.Local.As4() == h.Dst) {
			r.Hear(netip.AddrFrom4(h.Src), payload)
			heard = true
		}
	}
	return heard
}
