package stack

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/checksum"
	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Raw is a raw socket. It receives a copy of each packet of its protocol for this node. If a raw
// socket receives a packet, the node sends no protocol unreachable.
type Raw struct {
	Protocol uint8
	// Local is the destination address of the packets to receive. An unspecified address stands for
	// any address of its family, and an invalid one for any address.
	Local netip.Addr
	// Receive is called with the source and the payload of each packet. The payload is the part
	// after the IP header, and is valid during the call.
	Receive func(from netip.Addr, payload []byte)
}

// Raws are the raw sockets.
type Raws struct {
	ifs  *Interfaces
	out  *sender
	list []*Raw
}

// maxRaws is the largest number of raw sockets of a stack.
const maxRaws = 64

// Open lets r receive packets until Close.
func (rs *Raws) Open(r *Raw) error {
	if !isUnset(r.Local) {
		if _, own := rs.ifs.self(r.Local); !own {
			return ErrNotOurs
		}
	}
	if len(rs.list) >= maxRaws {
		return ErrTooMany
	}
	rs.list = append(rs.list, r)
	return nil
}

// Close undoes Open.
func (rs *Raws) Close(r *Raw) {
	rs.list = slices.DeleteFunc(rs.list, func(q *Raw) bool { return q == r })
}

// RawPacket is a packet that a raw socket sends.
type RawPacket struct {
	Protocol uint8
	Src, Dst netip.Addr // addresses; an invalid Src stands for that of the outgoing interface
	TTL, TOS uint8      // TTL and TOS; a TTL of 0 stands for the default
	DF       bool
	Payload  []byte
}

// accepts reports whether the socket receives packets to an address.
func (r *Raw) accepts(dst netip.Addr) bool {
	if isUnset(r.Local) {
		return !r.Local.IsValid() || r.Local.Is4() == dst.Is4()
	}
	return r.Local == dst
}

// Send sends a packet of any protocol. It fills in the checksum of ICMPv6 (RFC 3542 §3.1), but no
// other checksum in the payload.
func (rs *Raws) Send(now clock.Time, p *RawPacket) error {
	if rs.out.bytes >= maxQueuedBytes/2 {
		return ErrQueueFull
	}
	h := ip.Header{
		Protocol: p.Protocol, TTL: p.TTL, TOS: p.TOS, DF: p.DF, Dst: p.Dst,
	}
	if p.Src.IsValid() {
		h.Src = p.Src
	}
	if h.Protocol == ip.ProtoICMPv6 && h.Is6() && len(p.Payload) >= 4 {
		if isUnset(h.Src) {
			source, err := rs.out.routing.sourceTo(h.Dst)
			if err != nil {
				return err
			}
			h.Src = source
		}
		b := slices.Clone(p.Payload)
		b[2], b[3] = 0, 0
		sum := checksum.PseudoHeader(h.Src, h.Dst, h.Protocol, len(b))
		binary.BigEndian.PutUint16(b[2:], ^checksum.Fold(checksum.Sum(b, sum)))
		return rs.out.send(now, h, b)
	}
	return rs.out.send(now, h, p.Payload)
}

// deliver passes a packet to the raw sockets of its protocol, and reports whether there is one.
func (rs *Raws) deliver(h *ip.Header, payload []byte) (delivered bool) {
	for _, r := range rs.list {
		if r.Protocol == h.Protocol && r.accepts(h.Dst) {
			r.Receive(h.Src, payload)
			delivered = true
		}
	}
	return delivered
}
