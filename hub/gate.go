package hub

import (
	"net/netip"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/internal/ip"
)

// errRefused is the error of a socket after a packet to a closed port.
const errRefused = syscall.ECONNREFUSED

const (
	maxPacket = 1400 // in bytes; the course's MTU
	// joinFor is how long after joining the student's first packet may take to arrive.
	joinFor     = 5 * time.Minute
	ripProtocol = 200 // IP protocol number of the course's RIP
)

// The reasons for refusing a packet or a route.
const (
	refusedAddress   = "from another UDP address"
	refusedRate      = "too many packets"
	refusedSize      = "too long"
	refusedMalformed = "malformed"
	refusedFamily    = "not IPv4"
	refusedSource    = "source outside the subnet"
	refusedRIP       = "malformed RIP message"
	refusedRIPTo     = "RIP message not for the hub"
	refusedRoute     = "route to a network of others"
)

// admit checks a packet that arrived. It returns the student and the packet for the router, or nil
// if it refuses the packet.
func (h *Hub) admit(from netip.AddrPort, b []byte, now time.Time) (*student, []byte) {
	head, payload, drop := ip.ParseHeader(b)
	s := h.pinned[from]
	if s == nil {
		if s = h.join(from, &head, drop == ip.DropNone, now); s == nil {
			return nil, nil
		}
	}
	if !s.take(now, h.cfg.Rate) {
		s.refuse(refusedRate)
		return nil, nil
	}
	switch {
	case len(b) > maxPacket:
		s.refuse(refusedSize)
	case drop != ip.DropNone:
		s.refuse(refusedMalformed)
	case head.Is6():
		s.refuse(refusedFamily)
	case !h.subnet(s.Slot).Contains(head.Src) || head.Src == h.router(s.Slot):
		s.refuse(refusedSource)
	case head.Protocol == ripProtocol:
		if b = h.filterRIP(s, &head, payload, now); b == nil {
			return nil, nil
		}
		fallthrough
	default:
		s.seen = now
		s.Packets++
		s.Bytes += uint64(len(b))
		return s, b
	}
	return nil, nil
}

// join pins the UDP address of a student who has joined: the source of the first packet that comes
// from the machine that presented the token, with the student's virtual address. join counts other
// packets from addresses that are not pinned.
func (h *Hub) join(from netip.AddrPort, head *ip.Header, ok bool, now time.Time) *student {
	var s *student
	if ok && head.Src.Is4() {
		s = h.owner(head.Src)
	}
	if s == nil {
		h.unknownSources++
		return nil
	}
	if now.After(s.until) || s.machine != from.Addr() || head.Src != h.host(s.Slot) {
		s.refuse(refusedAddress)
		return nil
	}
	delete(h.pinned, s.Address)
	s.Address, s.until = from, time.Time{}
	h.pinned[from] = s
	return s
}

// take reports whether the student's budget of packets per second allows one more, and subtracts
// it. The budget of a second may be used at once.
func (s *student) take(now time.Time, rate int) bool {
	s.budget = min(float64(rate), s.budget+now.Sub(s.budgeted).Seconds()*float64(rate))
	s.budgeted = now
	if s.budget < 1 {
		return false
	}
	s.budget--
	return true
}

func (s *student) refuse(why string) {
	if s.Refused == nil {
		s.Refused = map[string]uint64{}
	}
	s.Refused[why]++
}
