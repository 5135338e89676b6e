package rip

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Input processes a received message. It returns Accepted if it accepted the message. Otherwise it
// counts the refusal by its reason: the sender (RFC 2453 §3.9.2 requires a valid neighbor) or the
// format. In RIPng the caller rejects messages from port 521 whose hop limit is not 255
// (RefusedHopLimit, RFC 2080 §2.4.2).
func (s *Speaker) Input(now clock.Time, from netip.AddrPort, iface int, payload []byte) Refusal {
	var r Refusal
	switch s.cfg.Dialect {
	case RIPng:
		r = s.inputNG(now, from, iface, payload)
	case RIPv2:
		r = s.input2(now, from, iface, payload)
	default:
		r = s.inputCourse(now, from.Addr(), iface, payload)
	}
	if r == Accepted {
		return r
	}
	return s.Refuse(from, iface, r)
}

// Refuse counts a message that the caller rejects. It returns the reason.
func (s *Speaker) Refuse(from netip.AddrPort, iface int, r Refusal) Refusal {
	if g := s.gateways[Neighbor{from.Addr(), iface}]; g != nil {
		g.refused++
	}
	s.addEvent(Event{Kind: MessageRefused, Neighbor: from.Addr(), Iface: iface, Reason: r})
	s.refused[r]++
	return r
}

func (s *Speaker) inputCourse(now clock.Time, from netip.Addr, iface int, payload []byte) Refusal {
	g := s.gateways[Neighbor{from, iface}]
	if g == nil {
		return RefusedNotNeighbor
	}
	if !g.port.up {
		return RefusedInterface
	}
	p, ok := ParsePacket(payload, s.parsed)
	if !ok {
		return RefusedForm
	}
	s.parsed = p.Entries
	s.noteMessage(now, g)
	if p.Command == Request {
		// RFC 2453 §3.9.1: this is a request for the whole table. The dialect has no other request,
		// so the entries do not matter.
		s.counters.RequestsIn++
		g.requests++
		if g.outlet != nil {
			g.outlet.full = true
		}
		return Accepted
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
			s.refused[RefusedMetric]++
		case !isDestination(e.Prefix):
			s.refused[RefusedMartian]++
		default:
			e.NextHop = from
			s.learn(now, g, e)
		}
	}
	return Accepted
}

// isDestination reports whether p can be the destination of a route (RFC 2453 §3.9.2: "unicast; not
// net 0 or 127"). The default route is a valid destination.
func isDestination(p netip.Prefix) bool {
	a := p.Addr()
	if a.Is6() && p.Bits() > 0 { // RFC 2080 §2.4.2 excludes multicast and link-local prefixes
		return !a.IsMulticast() && !a.IsLinkLocalUnicast() && !a.IsLoopback() &&
			!a.IsUnspecified() && !a.Is4In6()
	}
	return p.Bits() == 0 || a.As4()[0] != 0 && a.As4()[0] != 127 && a.As4()[0] < 224
}

// learn processes one entry (RFC 2453 §3.9.2). Router g reaches e.Prefix. This router can reach it
// through e.NextHop, at the entry's cost plus that of the link.
func (s *Speaker) learn(now clock.Time, g *gateway, e *Entry) {
	cost := min(int(e.Cost)+g.port.Cost, Infinity)
	r := s.table.find(e.Prefix)
	if r == nil {
		// RFC 2453 §3.9.2: do not add a prefix that is unreachable.
		if cost == Infinity {
			return
		}
		if len(s.table.byPrefix) >= s.cfg.MaxRoutes {
			s.refused[RefusedTableFull]++
			return
		}
		r = s.table.add(e.Prefix)
	}
	same := r.via == g
	switch {
	case r.isOwn():
		// A learned route never replaces the router's own network.
	case same && cost == Infinity:
		s.invalidate(now, r)
	case same && cost == r.cost && e.NextHop == r.hop && e.Tag == r.tag:
		s.table.schedule(r, now.Add(s.cfg.Timeout))
	case r.via == nil && r.heldUntil != clock.Never && now < r.heldUntil && cost >= r.lost:
		// Hold-down: the entry may be outdated information that still circulates.
	case same || cost < r.cost || cost == r.cost && s.isStale(now, r):
		r.setVia(g)
		r.cost, r.hop, r.tag, r.heldUntil = cost, e.NextHop, e.Tag, clock.Never
		s.table.schedule(r, now.Add(s.cfg.Timeout))
		s.publish(now, r)
	}
}

// isStale reports whether a learned route has not been refreshed for half of its lifetime. RFC 2453
// §3.9.2 then prefers another route at the same cost. Until then, a route at equal cost does not
// replace another.
func (s *Speaker) isStale(now clock.Time, r *route) bool {
	return r.via != nil && r.due.Sub(now) < s.cfg.Timeout/2
}

// admit performs the first checks of RIP version 1 and 2 (RFC 2453 §3.9) and RIPng (RFC 2080 §2.4):
// interface, sender, header, version, and the port of a response.
func (s *Speaker) admit(from netip.AddrPort, iface int, b []byte) (p *port, m Packet2, r Refusal) {
	if iface < 0 || iface >= len(s.ports) || !s.ports[iface].up {
		return nil, m, RefusedInterface
	}
	p = s.ports[iface]
	if r = s.checkSender(p, from.Addr(), iface); r != Accepted {
		return nil, m, r
	}
	m, r = parseHeader2(b)
	switch {
	case r != Accepted:
	case !p.accepts(m.Version):
		r = RefusedVersion
	case m.Command == Response && from.Port() != p.udp():
		r = RefusedPort // RFC 2453 §3.9.2 and RFC 2080 §2.4.2 require this port
	}
	return p, m, r
}

// input2 processes a message of RIP version 1 or 2 in the order of RFC 2453 §3.9: admission,
// authentication, and contents.
func (s *Speaker) input2(now clock.Time, from netip.AddrPort, iface int, b []byte) Refusal {
	p, m, r := s.admit(from, iface, b)
	if r != Accepted {
		return r
	}
	body := b[header2:]
	var auth authentication
	if m.Version > 1 {
		if auth, body, r = authenticate(p.Keys, b); r != Accepted {
			return r
		}
	}
	if m.Entries, r = parseEntries2(body, s.parsed2); r != Accepted {
		return r
	}
	s.parsed2 = m.Entries
	if m.Version == 1 && !mustBeZeroFieldsAreZero(b, m.Entries) {
		return RefusedMustBeZero
	}
	if m.Command == Request && auth.key == nil {
		return s.requested(p, from, iface, m) // the client need not be a known router
	}
	g := s.findOrAdd(now, Neighbor{from.Addr(), iface})
	if g == nil {
		return RefusedTooManyNeighbors
	}
	if !s.checkSequence(now, g, auth) {
		return RefusedSequence
	}
	s.noteMessage(now, g)
	g.version = m.Version
	if m.Command == Request {
		g.requests++
		return s.requested(p, from, iface, m)
	}
	s.responded(now, g, m)
	return Accepted
}

// checkSender checks the source (RFC 2453 §3.9.2): another node on the link.
func (s *Speaker) checkSender(p *port, from netip.Addr, iface int) Refusal {
	if from.Is6() != p.isIPv6() {
		return RefusedOffLink
	}
	for _, mine := range s.ports {
		// RFC 4007 §6: an IPv6 link-local address is unique only on its link.
		if mine.Addr.Addr() == from && (mine == p || !p.isIPv6()) {
			return RefusedOwn
		}
	}
	switch g := s.gateways[Neighbor{from, iface}]; {
	case g != nil && g.configured:
		return Accepted
	case p.neighborsOnly:
		return RefusedNotNeighbor
	case !p.isOnLink(from):
		return RefusedOffLink
	}
	return Accepted
}

// responded processes the entries of a response.
func (s *Speaker) responded(now clock.Time, g *gateway, m Packet2) {
	s.counters.ResponsesIn++
	g.responses++
	s.counters.EntriesIn += uint64(len(m.Entries))
	for i := range m.Entries {
		if e, r := g.entry(&m.Entries[i]); r == Accepted {
			s.learn(now, g, &e)
		} else {
			s.refused[r]++
		}
	}
}

// entry decodes an entry. It returns the reason if RFC 2453 §3.9.2 ignores the entry.
func (g *gateway) entry(w *Entry2) (e Entry, r Refusal) {
	if w.Family != familyIPv4 {
		return e, RefusedFamily
	}
	addr := addrOf(w.Addr)
	if w.Mask == 0 {
		e.Prefix = g.port.inferPrefix(addr) // RFC 2453 §4.3: without a mask, the prefix is inferred
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
	// RFC 2453 §4.4: use the next hop in the entry if it is on the link, otherwise the sender.
	e.NextHop = g.Addr
	if hop := addrOf(w.NextHop); w.NextHop != 0 && w.Metric < Infinity && g.port.Addr.Bits() < 32 {
		if hop == g.port.Addr.Addr() {
			return e, RefusedNextHop
		}
		if g.port.isOnLink(hop) {
			e.NextHop = hop
		}
	}
	return e, Accepted
}

// reply is a response with encoded entries of EntrySize2 bytes.
type reply struct {
	outlet  *outlet
	entries []byte
}

// maxAnswers limits the requests that wait for a response. Further requests are rejected.
const maxAnswers = 64

// requested answers a request (RFC 2453 §3.9.1). It sends the whole table, or the metrics of the
// requested prefixes, to the source address and port.
func (s *Speaker) requested(p *port, from netip.AddrPort, iface int, m Packet2) Refusal {
	s.counters.RequestsIn++
	switch {
	case len(m.Entries) == 0:
		return Accepted // RFC 2453 §3.9.1: "If there are no entries, no response is given."
	case p.silentTo(from):
		return RefusedSilent
	case m.Version == 1 && p.Send == SendRIP2, m.Version > 1 && p.Send == SendRIP1:
		return RefusedVersion // RFC 2453 §4.6: a router that sends only RIP-2 does not answer RIP-1
	}
	o := &outlet{to: from, iface: iface, port: p, version: min(m.Version, 2)}
	if e := &m.Entries[0]; len(m.Entries) == 1 && e.Family == 0 && e.Metric == Infinity {
		return s.answer(o, nil)
	}
	var entries []byte
	for _, e := range m.Entries {
		e.Metric = s.metric(p, &e)
		entries = e.Append(entries)
	}
	return s.answer(o, entries)
}

// silentTo reports whether the port must not answer a request. This is so if the port sends
// nothing, or if it is passive and the request comes from a router.
func (p *port) silentTo(from netip.AddrPort) bool {
	return p.Send == SendNone || p.Passive && from.Port() == p.udp()
}

// answer queues the response to a request: encoded entries, or the whole table if entries is nil.
// Only monitoring tools request single prefixes, so split horizon does not apply to them.
func (s *Speaker) answer(o *outlet, entries []byte) Refusal {
	o.answer, o.full = true, true
	switch {
	case len(s.answers)+len(s.replies) >= maxAnswers:
		return RefusedBusy
	case entries != nil:
		s.replies = append(s.replies, reply{o, entries})
	case !slices.ContainsFunc(s.answers, func(a *outlet) bool {
		return a.to == o.to && a.iface == o.iface && a.full
	}):
		s.answers = append(s.answers, o)
	}
	return Accepted
}

// metric returns the table's metric for the destination of an entry.
func (s *Speaker) metric(p *port, w *Entry2) uint32 {
	if w.Family != familyIPv4 {
		return Infinity
	}
	prefix := p.inferPrefix(addrOf(w.Addr))
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

// inputNG processes a message of RIPng. The sender must have a link-local address. Requests from
// other addresses, which RFC 2080 §2.4.1 allows for diagnosis, are therefore rejected.
func (s *Speaker) inputNG(now clock.Time, from netip.AddrPort, iface int, b []byte) Refusal {
	p, m, r := s.admit(from, iface, b)
	if r != Accepted {
		return r
	}
	entries := b[header2:]
	if len(entries)%EntrySize2 != 0 {
		return RefusedForm
	}
	if m.Command == Request && from.Port() != p.udp() {
		return s.requestedNG(p, from, iface, entries) // the client is a tool and not a router
	}
	g := s.findOrAdd(now, Neighbor{from.Addr(), iface})
	if g == nil {
		return RefusedTooManyNeighbors
	}
	s.noteMessage(now, g)
	g.version = m.Version
	if m.Command == Request {
		g.requests++
		return s.requestedNG(p, from, iface, entries)
	}
	s.respondedNG(now, g, entries)
	return Accepted
}

// respondedNG processes the entries of a response (RFC 2080 §2.4.2).
func (s *Speaker) respondedNG(now clock.Time, g *gateway, entries []byte) {
	s.counters.ResponsesIn++
	g.responses++
	hop := g.Addr
	for ; len(entries) > 0; entries = entries[EntrySize2:] {
		w := parseEntryNG(entries)
		if w.metric == nextHopMetric {
			// RFC 2080 §2.1.1: an address that is not link-local means the sender.
			if hop = w.addr; !isLinkLocal(hop) {
				hop = g.Addr
			}
			continue
		}
		s.counters.EntriesIn++
		e, r := w.decode()
		if r == Accepted && hop == g.port.Addr.Addr() && e.Cost < Infinity {
			r = RefusedNextHop
		}
		if r != Accepted {
			s.refused[r]++
			continue
		}
		e.NextHop = hop
		s.learn(now, g, &e)
	}
}

// requestedNG answers a request (RFC 2080 §2.4.1) with the whole table, or with the metrics of the
// requested prefixes.
func (s *Speaker) requestedNG(p *port, from netip.AddrPort, iface int, entries []byte) Refusal {
	s.counters.RequestsIn++
	o := &outlet{to: from, iface: iface, port: p, version: versionNG}
	switch {
	case len(entries) == 0:
		return Accepted // a request without entries gets no response
	case p.silentTo(from):
		return RefusedSilent
	}
	if w := parseEntryNG(entries); len(entries) == EntrySize2 && w.metric == Infinity &&
		w.bits == 0 && w.addr == netip.IPv6Unspecified() {
		return s.answer(o, nil)
	}
	var encoded []byte
	for ; len(entries) > 0; entries = entries[EntrySize2:] {
		w := parseEntryNG(entries)
		w.metric = Infinity
		if w.bits <= 128 {
			if r := s.table.find(netip.PrefixFrom(w.addr, w.bits).Masked()); r != nil {
				w.metric = uint8(r.cost)
			}
		}
		encoded = w.append(encoded)
	}
	return s.answer(o, encoded)
}
