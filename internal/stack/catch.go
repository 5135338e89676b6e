package stack

import "github.com/tidepool-net/tidepool/internal/ip"

// Catch makes the stack answer for every address: up to limit SYNs that nobody
// listens for, whoever they are for, wait in TCP for a decision (tcp.Host.Admit,
// Reject, Ignore). A router still passes on what it has a route for. Zero ends it.
func (s *Stack) Catch(limit int) {
	s.catching = limit > 0
	s.tcp.Catch(limit)
}

// catches reports whether a packet for another's address is delivered here.
func (s *Stack) catches(h *ip.Header) bool {
	if !s.catching || h.Protocol != ip.ProtoTCP || martian(h) {
		return false
	}
	if !s.cfg.Forwarding {
		return true
	}
	_, routed := s.routes.Lookup(h.Dst)
	return !routed
}

// martian reports whether a packet has an address that no host on another link
// can have (RFC 1812 §5.3.7).
func martian(h *ip.Header) bool {
	return h.Dst[0] >= 224 || h.Dst[0] == 127 || h.Dst[0] == 0 ||
		h.Src[0] >= 224 || h.Src[0] == 127
}
