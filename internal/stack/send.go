package stack

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
)

// Errors of a packet that the node itself wants to send.
var (
	ErrNoRoute       = errors.New("no route to host")
	ErrNoNeighbor    = errors.New("no such neighbor")
	ErrInterfaceDown = errors.New("interface is down")
	ErrTooBig        = errors.New("message too long")
	ErrQueueFull     = errors.New("output queue full")
)

// send queues a packet of the node's own. A zero source is filled in.
func (s *Stack) send(now clock.Time, h ip.Header, payload []byte) error {
	if n := ip.HeaderLen + len(payload); n > ip.MaxPacketLen {
		return fmt.Errorf("a packet of %d bytes: %w", n, ErrTooBig)
	}
	if err := s.inside(h.Src, h.Dst); err != nil {
		return err
	}
	if i, self := s.self(h.Dst); self {
		if h.Src == (ip.Addr{}) {
			h.Src = h.Dst
		}
		h.TotalLen = h.Size() + len(payload)
		return s.queueLocal(now, i, append(h.Append(nil), payload...))
	}
	i, hop, err := s.way(h.Dst)
	if errors.Is(err, ErrNoNeighbor) {
		s.interfaces[i].tx.drops[ip.DropUnknownNeighbor]++
	}
	if err != nil {
		return err
	}
	return s.sendVia(now, i, hop, h, payload)
}

// inside refuses what would carry a source of 127/8 out of the node: RFC 1122
// §3.2.1.3 (g).
func (s *Stack) inside(src, dst ip.Addr) error {
	if _, self := s.self(dst); loopback(src) && !self {
		return fmt.Errorf("%v from %v: %w", netip.AddrFrom4(dst), netip.AddrFrom4(src), ErrNoRoute)
	}
	return nil
}

// way finds the interface and next hop for a packet of the node's own to
// another node, or to all on a link.
func (s *Stack) way(dst ip.Addr) (i int, hop ip.Addr, err error) {
	if isGroup(dst) || dst == limited {
		if i, ok := s.outlet(dst); ok {
			return i, dst, nil
		}
	}
	h, ok := s.hop(dst)
	switch {
	case !ok:
		return 0, hop, fmt.Errorf("%v: %w", netip.AddrFrom4(dst), ErrNoRoute)
	case h.OnLink && !s.present(h.Iface, dst) && !s.broadcast(h.Iface, dst):
		return h.Iface, hop, fmt.Errorf("%v is not on %s's link: %w", netip.AddrFrom4(dst),
			s.interfaces[h.Iface].Name, ErrNoNeighbor)
	}
	return h.Iface, h.Next, nil
}

// sendVia queues a packet for a given interface and next hop.
func (s *Stack) sendVia(now clock.Time, i int, hop ip.Addr, h ip.Header, payload []byte) error {
	out := &s.interfaces[i]
	if h.Src == (ip.Addr{}) {
		h.Src = out.addr
	}
	if !h.DF { // RFC 6864 §4.1: what is atomic needs no identification
		h.ID = s.ids.Next(h.Src, h.Dst, h.Protocol)
	}
	h.TotalLen = h.Size() + len(payload)
	b := append(h.Append(s.out.memory.take(h.TotalLen)), payload...)
	switch {
	case !out.up:
		s.dropOne(now, i, Outbound, ip.DropInterfaceDown, b)
		return fmt.Errorf("%s: %w", out.Name, ErrInterfaceDown)
	case len(b) > out.MTU && !mayCut(&h):
		s.dropOne(now, i, Outbound, ip.DropTooBig, b)
		return fmt.Errorf("%d bytes over %s with MTU %d: %w", len(b), out.Name, out.MTU, ErrTooBig)
	case s.out.bytes+len(b) > maxQueuedBytes:
		s.dropOne(now, i, Outbound, ip.DropQueueFull, b)
		return fmt.Errorf("%s: %w", out.Name, ErrQueueFull)
	}
	s.enqueue(now, i, hop, b)
	return nil
}

// queueLocal keeps a packet from the node to itself for the next Advance.
func (s *Stack) queueLocal(now clock.Time, i int, b []byte) error {
	if s.out.bytes+len(b) > maxQueuedBytes {
		s.dropOne(now, i, Outbound, ip.DropQueueFull, b)
		return ErrQueueFull
	}
	s.out.bytes += len(b)
	s.out.local = append(s.out.local, packet{iface: i, data: b})
	s.out.localAt = now
	return nil
}

// deliverLocal receives what the node has sent to itself.
func (s *Stack) deliverLocal(now clock.Time) {
	local := s.out.local
	s.out.local = nil
	s.in.self = true
	for _, p := range local {
		s.out.bytes -= len(p.data)
		s.receive(now, p.iface, p.data)
	}
	s.in.self = false
	s.flushTrain(now)
}

// SendTest sends a packet of the given protocol whose payload is text: the
// family's way to try a network out. It returns the packet's size in bytes.
func (s *Stack) SendTest(now clock.Time, dst netip.Addr, protocol uint8, text []byte) (int, error) {
	h := ip.Header{Protocol: protocol, TTL: courseTTL, Dst: dst.As4()}
	return ip.HeaderLen + len(text), s.send(now, h, text)
}
