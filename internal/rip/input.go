package rip

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Input processes a received message. It counts refused messages by reason: the sender (RFC 2453
// §3.9.2 requires a valid neighbor) or the format. Taken means accepted.
func (s *Speaker) Input(now clock.Time, from netip.AddrPort, iface int, payload []byte) Refusal {
	var r Refusal
	if s.cfg.Dialect == RIPv2 {
		r = s.input2(now, from, iface, payload)
	} else {
		r = s.inputCourse(now, from.Addr(), iface, payload)
	}
	if r == Taken {
		return r
	}
	if g := s.gateway(from.Addr(), iface); g != nil {
		g.refused++
	}
	s.tell(Event{Kind: MessageRefused, Neighbor: from.Addr(), Iface: iface, Reason: r})
	return s.refuse(r)
}

func (s *Speaker) inputCourse(
	now clock.Time, from netip.Addr, iface int, payload []byte,
) Refusal {
	g := s.gateway(from, iface)
	if g == nil {
		return RefusedStranger
	}
	if !g.port.up {
		return RefusedInterface
	}
	p, ok := ParsePacket(payload, s.parsed)
	if !ok {
		return RefusedForm
	}
	s.parsed = p.Entries
	s.hear(now, g)
	if p.Command == Request {
		// RFC 2453 §3.9.1: a request for the whole table. The dialect has no other request, so
		// entries are ignored.
		s.counters.RequestsIn++
		g.requests++
		if g.outlet != nil {
			g.outlet.full = true
		}
		return Taken
	}
	s.counters.ResponsesIn++
	g.responses++
	s.counters.EntriesIn += uint64(len(p.Entries) + p.Rejected)
	s.refused[RefusedMask] += uint64(p.Rejected)
	if o := g.outlet; o != nil && p.EntrySize == OldEntrySize {
		o.width = OldEntrySize
	} else if o != nil && p.EntrySize == EntrySize {
		o.width = s.cfg.EntrySize
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		switch {
		case e.Cost > Infinity:
			s.refuse(RefusedMetric)
		case !isDestination(e.Prefix):
			s.refuse(RefusedMartian)
		default:
			e.NextHop = from
			s.learn(now, g, e)
		}
	}
	return Taken
}

// isDestination reports whether p can be the destination of a route (RFC 2453 §3.9.2: "unicast; not
// net 0 or 127"). The default route can.
func isDestination(p netip.Prefix) bool {
	first := p.Addr().As4()[0]
	return p.Bits() == 0 || first != 0 && first != 127 && first < 224
}

// learn processes one entry (RFC 2453 §3.9.2). Router g reaches e.Prefix; we would reach it through
// e.NextHop, at its cost and that of the link.
func (s *Speaker) learn(now clock.Time, g *gateway, e *Entry) {
	cost := min(int(e.Cost)+g.port.Cost, Infinity)
	r := s.table.find(e.Prefix)
	if r == nil {
		// RFC 2453 §3.9.2: an unreachable prefix is not added.
		if cost == Infinity {
			return
		}
		if len(s.table.byPrefix) >= s.cfg.MaxRoutes {
			s.refuse(RefusedTableFull)
			return
		}
		r = s.table.add(e.Prefix)
	}
	same := r.via == g
	switch {
	case r.isOwn():
		// No learned route replaces our own network.
	case same && cost == Infinity:
		s.kill(now, r)
	case same && cost == r.cost && e.NextHop == r.hop && e.Tag == r.tag:
		s.table.schedule(r, now.Add(s.cfg.Timeout))
	case r.via == nil && r.heldUntil != clock.Never && now < r.heldUntil && cost >= r.lost:
		// Hold-down: this may be outdated information that still circulates.
	case same || cost < r.cost || cost == r.cost && s.isStale(now, r):
		r.setVia(g)
		r.cost, r.hop, r.tag, r.heldUntil = cost, e.NextHop, e.Tag, clock.Never
		s.table.schedule(r, now.Add(s.cfg.Timeout))
		s.publish(now, r)
	}
}

// isStale reports whether a learned route was not refreshed for half of its lifetime. RFC 2453
// §3.9.2 then prefers another route at the same cost. Before that, routes at equal cost do not
// replace each other.
func (s *Speaker) isStale(now clock.Time, r *route) bool {
	return r.via != nil && r.due.Sub(now) < s.cfg.Timeout/2
}

// input2 processes a message of RIP version 1 or 2 in the order of RFC 2453 §3.9: interface,
// sender, format, authentication, contents.
func (s *Speaker) input2(
	now clock.Time, from netip.AddrPort, iface int, b []byte,
) Refusal {
	if iface < 0 || iface >= len(s.ports) || !s.ports[iface].up {
		return RefusedInterface
	}
	p := s.ports[iface]
	if r := s.judgeSender(p, from.Addr(), iface); r != Taken {
		return r
	}
	m, r := parseHeader2(b)
	switch {
	case r != Taken:
		return r
	case !p.accepts(m.Version):
		return RefusedVersion
	case m.Command == Response && from.Port() != Port:
		return RefusedPort // RFC 2453 §3.9.2
	}
	body := b[header2:]
	var auth authentication
	if m.Version > 1 {
		if auth, body, r = authenticate(p.Keys, b); r != Taken {
			return r
		}
	}
	if m.Entries, r = parseEntries2(body, s.parsed2); r != Taken {
		return r
	}
	s.parsed2 = m.Entries
	if m.Version == 1 && !isZeroWhereItMust(b, m.Entries) {
		return RefusedMustBeZero
	}
	if m.Command == Request && auth.key == nil {
		return s.requested(p, from, iface, m) // the client may be unknown
	}
	g := s.gateway(from.Addr(), iface)
	if g == nil {
		if g = s.enlist(now, Neighbor{from.Addr(), iface}); g == nil {
			return RefusedCrowd
		}
	}
	if !s.follows(now, g, auth) {
		return RefusedSequence
	}
	s.hear(now, g)
	g.version = m.Version
	if m.Command == Request {
		g.requests++
		return s.requested(p, from, iface, m)
	}
	s.responded(now, g, m)
	return Taken
}

// judgeSender checks the source (RFC 2453 §3.9.2): it must be on the link and not ourselves.
func (s *Speaker) judgeSender(p *port, from netip.Addr, iface int) Refusal {
	if !from.Is4() {
		return RefusedOffLink
	}
	for _, mine := range s.ports {
		if mine.Addr.Addr() == from {
			return RefusedOwn
		}
	}
	switch g := s.gateway(from, iface); {
	case g != nil && g.configured:
		return Taken
	case p.listed:
		return RefusedStranger
	case !p.isOnLink(from):
		return RefusedOffLink
	}
	return Taken
}

// responded processes the entries of a response.
func (s *Speaker) responded(now clock.Time, g *gateway, m Packet2) {
	s.counters.ResponsesIn++
	g.responses++
	s.counters.EntriesIn += uint64(len(m.Entries))
	for i := range m.Entries {
		if e, r := g.entry(&m.Entries[i]); r == Taken {
			s.learn(now, g, &e)
		} else {
			s.refuse(r)
		}
	}
}

// entry decodes an entry, or returns the reason why RFC 2453 §3.9.2 ignores it.
func (g *gateway) entry(w *Entry2) (e Entry, r Refusal) {
	if w.Family != familyIPv4 {
		return e, RefusedFamily
	}
	addr := addrOf(w.Addr)
	if w.Mask == 0 {
		e.Prefix = g.port.inferred(addr) // RFC 2453 §4.3: without a mask
	} else {
		bits, ok := prefixLength(w.Mask)
		if !ok {
			return e, RefusedMask
		}
		e.Prefix = netip.PrefixFrom(addr, bits).Masked()
	}
	switch {
	case !isDestination(e.Prefix):
		return e, RefusedMartian
	case w.Metric < 1 || w.Metric > Infinity:
		return e, RefusedMetric
	}
	e.Cost, e.Tag = w.Metric, w.Tag
	// RFC 2453 §4.4: the next hop in the entry if it is on the link, otherwise the sender.
	e.NextHop = g.Addr
	if hop := addrOf(w.NextHop); w.NextHop != 0 && w.Metric < Infinity && g.port.Addr.Bits() < 32 {
		if hop == g.port.Addr.Addr() {
			return e, RefusedNextHop
		}
		if g.port.isOnLink(hop) {
			e.NextHop = hop
		}
	}
	return e, Taken
}

// reply is a response with prepared entries.
type reply struct {
	outlet  *outlet
	entries []Entry2
}

// maxAnswers bounds the requests that wait for a response. Further requests are refused.
const maxAnswers = 64

// requested answers a request (RFC 2453 §3.9.1) to its source address and port: with the whole
// table, or with the metrics of the requested prefixes.
func (s *Speaker) requested(p *port, from netip.AddrPort, iface int, m Packet2) Refusal {
	s.counters.RequestsIn++
	switch {
	case len(m.Entries) == 0:
		return Taken // "If there are no entries, no response is given."
	case p.Send == SendNone, p.Passive && from.Port() == Port:
		return RefusedSilent
	case m.Version == 1 && p.Send == SendRIP2, m.Version > 1 && p.Send == SendRIP1:
		return RefusedVersion // RFC 2453 §4.6: a router that sends only RIP-2 does not answer RIP-1
	case len(s.answers)+len(s.replies) >= maxAnswers:
		return RefusedBusy
	}
	o := &outlet{
		to: from, iface: iface, port: p, version: min(m.Version, 2), answer: true, full: true,
	}
	if e := &m.Entries[0]; len(m.Entries) == 1 && e.Family == 0 && e.Metric == Infinity {
		if !slices.ContainsFunc(s.answers, func(a *outlet) bool {
			return a.to == o.to && a.iface == iface && a.full
		}) {
			s.answers = append(s.answers, o)
		}
		return Taken
	}
	// Requests for single prefixes come from monitoring tools and not from routers, so split
	// horizon does not apply.
	r := reply{outlet: o, entries: slices.Clone(m.Entries)}
	for i := range r.entries {
		r.entries[i].Metric = s.metric(p, &r.entries[i])
	}
	s.replies = append(s.replies, r)
	return Taken
}

// metric returns the table's metric for the destination of an entry.
func (s *Speaker) metric(p *port, w *Entry2) uint32 {
	if w.Family != familyIPv4 {
		return Infinity
	}
	prefix := p.inferred(addrOf(w.Addr))
	if w.Mask != 0 {
		bits, ok := prefixLength(w.Mask)
		if !ok {
			return Infinity
		}
		prefix = netip.PrefixFrom(addrOf(w.Addr), bits).Masked()
	}
	if r := s.table.find(prefix); r != nil {
		return uint32(r.cost)
	}
	return Infinity
}
