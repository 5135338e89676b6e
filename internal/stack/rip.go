package stack

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
	"github.com/tidepool-net/tidepool/internal/ip"
	"github.com/tidepool-net/tidepool/internal/rip"
	"github.com/tidepool-net/tidepool/internal/udp"
)

// startRIP makes the Speaker, tells it what is ours and lets it begin. It takes over what the one
// before it knows, nil: there is none.
func (s *Stack) startRIP(now clock.Time, before *rip.Speaker) error {
	if s.cfg.RIP == nil {
		return nil
	}
	speaker, err := rip.NewSpeaker(s.configRIP())
	if err != nil {
		return fmt.Errorf("stack: %w", err)
	}
	s.rip = speaker
	for i := range s.interfaces {
		if !s.interfaces[i].Addr.IsValid() {
			continue // it is no more
		}
		s.rip.SetLocal(now, s.interfaces[i].Addr.Masked(), i, true)
		if s.speaksRIP2() {
			// RFC 2453 §4.5: on every interface, and nobody is told.
			if err := s.Join(i, rip.Multicast); err != nil {
				return err
			}
		}
	}
	for _, e := range s.cfg.Originate {
		if !s.isNetwork(e.Prefix) {
			s.rip.SetExternal(now, e, true)
		}
	}
	s.reinstallAll(now)
	if before != nil {
		s.rip.Inherit(now, before)
	}
	s.rip.Start(now)
	return nil
}

// configRIP is the configuration with what RIPv2 needs and the stack knows: where no
// interfaces are told, RIPv2 is spoken on all of them.
func (s *Stack) configRIP() rip.Config {
	cfg := *s.cfg.RIP
	if cfg.Dialect != rip.RIPv2 {
		return cfg
	}
	if len(cfg.Interfaces) == 0 {
		for i := range s.interfaces {
			f := &s.interfaces[i]
			cfg.Interfaces = append(cfg.Interfaces, rip.Interface{Addr: f.Addr, MTU: f.MTU})
		}
	}
	if cfg.Rand == nil { // routers that draw the same would keep in step
		cfg.Rand = rand.New(rand.NewPCG(s.rng.Uint64(), uint64(be32(s.interfaces[0].addr))))
	}
	return cfg
}

// RIP returns the router's RIP; nil: there is none. Its owner is the stack's owner.
func (s *Stack) RIP() *rip.Speaker { return s.rip }

// WatchRoutes has f called with every route that RIP learns, changes or loses, before the
// table has it; nil ends it.
func (s *Stack) WatchRoutes(f func(rip.Change)) { s.routeWatch = f }

func (s *Stack) speaksRIP2() bool { return s.rip != nil && s.cfg.RIP.Dialect == rip.RIPv2 }

// originate has RIP announce a prefix that is configured to be, or withdraw it. One
// that the node has, or has had, a static route to goes with that; an interface's
// network goes with the interface; any other is announced while the node runs.
func (s *Stack) originate(now clock.Time, r ip.Route, up bool) {
	if s.rip == nil || s.isNetwork(r.Prefix) {
		return
	}
	var e rip.External
	named := func(e rip.External) bool { return e.Prefix == r.Prefix }
	switch i := slices.IndexFunc(s.cfg.Originate, named); {
	case i >= 0:
		e = s.cfg.Originate[i]
	case s.cfg.Redistribute != nil:
		e = *s.cfg.Redistribute
	default:
		return
	}
	e.Prefix, e.NextHop, e.Iface = r.Prefix, r.NextHop, r.Iface
	if !r.NextHop.IsValid() {
		e.Iface = -1
	}
	s.rip.SetExternal(now, e, up)
	s.learn()
}

// learn brings what RIP has found out into the route table.
func (s *Stack) learn() {
	changed := false
	for {
		c, ok := s.rip.NextChange()
		if !ok {
			break
		}
		changed = true
		if s.routeWatch != nil {
			s.routeWatch(c)
		}
		if c.Gone {
			s.routes.Remove(c.Prefix, ip.RIP)
			continue
		}
		s.routes.Insert(ip.Route{
			Prefix: c.Prefix, NextHop: c.NextHop, Iface: c.Iface, Origin: ip.RIP, Cost: c.Cost,
		})
	}
	if changed {
		s.rerouted()
	}
	for _, e := range s.rip.Events() {
		s.tell(Event{RIP: &e})
	}
}

// Farewell tells RIP's neighbours that nothing is reached through this node any more. It is
// for an owner that is about to stop: without it they would send here until their routes
// time out. What has to be sent is fetched with Output.
func (s *Stack) Farewell(now clock.Time) {
	if s.rip == nil {
		return
	}
	for i := range s.interfaces {
		s.rip.Farewell(i)
	}
	s.outputRIP(now)
}

// courseRIP takes a message of the course's dialect.
func (s *Stack) courseRIP(now clock.Time, i int, h *ip.Header, payload []byte) ip.DropReason {
	if s.rip == nil || s.speaksRIP2() {
		return ip.DropRIP
	}
	return s.hearRIP(now, i, h.Src, 0, payload)
}

// datagramRIP takes a datagram that is for RIPv2, and reports whether it was.
func (s *Stack) datagramRIP(
	now clock.Time, i int, h *ip.Header, payload []byte,
) (reason ip.DropReason, mine bool) {
	if !s.speaksRIP2() {
		return ip.DropNone, false
	}
	u, text, ok := udp.ParseHeader(payload)
	if !ok || u.DstPort != rip.Port {
		return ip.DropNone, false
	}
	if !u.Verify(h.Src, h.Dst, payload) {
		return ip.DropUDPChecksum, true
	}
	return s.hearRIP(now, i, h.Src, u.SrcPort, text), true
}

// hearRIP gives a message to the Speaker.
func (s *Stack) hearRIP(
	now clock.Time, i int, src ip.Addr, port uint16, payload []byte,
) ip.DropReason {
	r := s.rip.Input(now, netip.AddrPortFrom(netip.AddrFrom4(src), port), i, payload)
	s.learn()
	if r != rip.Taken {
		return ip.DropRIP
	}
	return ip.DropNone
}

const (
	linkTTL = 1 // of RIPv2: it is for the link, and RFC 2453 §4.5 has nobody forward it
	// routingTOS is the precedence of routing: RFC 791 §3.1's Internetwork Control.
	routingTOS = 0xc0
)

// outputRIP queues the messages that RIP wants to send.
func (s *Stack) outputRIP(now clock.Time) {
	if s.rip == nil {
		return
	}
	for s.out.bytes < maxQueuedBytes/2 {
		var m rip.Message
		if !s.rip.Output(now, &m) {
			return
		}
		h := ip.Header{Protocol: ip.ProtoRIP, TTL: courseTTL, Dst: m.To.As4()}
		if s.speaksRIP2() {
			h.Src = s.interfaces[m.Iface].addr
			h.Protocol, h.TTL, h.TOS = ip.ProtoUDP, linkTTL, routingTOS
			u := udp.Header{SrcPort: rip.Port, DstPort: m.Port}
			s.out.datagram = u.Append(s.out.datagram[:0], h.Src, h.Dst, m.Payload)
			m.Payload = s.out.datagram
		}
		// An interface that went down in the meantime counts the drop itself.
		_ = s.sendVia(now, m.Iface, h.Dst, h, m.Payload)
	}
}

// RestartRIP has the node speak RIP as cfg says from now on, of which it takes what is RIP's, on
// the interfaces that there are now. What was learned from neighbors that stay is kept, and all of
// them are asked anew; what is not reached any more is withdrawn. That there is RIP, and its
// dialect, cannot change.
func (s *Stack) RestartRIP(now clock.Time, cfg Config) error {
	if s.rip == nil || cfg.RIP == nil || cfg.RIP.Dialect != s.cfg.RIP.Dialect {
		return fmt.Errorf("stack: RIP that begins, ends or is another: %w", rip.ErrConfig)
	}
	before, speaker := s.cfg, s.rip
	s.cfg.RIP, s.cfg.Originate, s.cfg.Redistribute = cfg.RIP, cfg.Originate, cfg.Redistribute
	if _, err := rip.NewSpeaker(s.configRIP()); err != nil {
		s.cfg = before
		return fmt.Errorf("stack: %w", err)
	}
	s.learn() // what it has found out and nobody has asked for yet
	for i := range s.interfaces {
		if s.cfg.RIP.Dialect == rip.RIPv2 {
			_ = s.Leave(i, rip.Multicast) // it joins anew
		}
	}
	err := s.startRIP(now, speaker)
	for i := range s.interfaces {
		if f := &s.interfaces[i]; f.Addr.IsValid() && !f.up {
			s.rip.SetLocal(now, f.Addr.Masked(), i, false)
		}
	}
	s.learn()
	s.rerouted()
	return err
}
