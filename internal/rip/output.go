package rip

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Message is one message to send. Messages of RIPng have the interface's link-local address as
// their source and a hop limit of 255 (RFC 2080 §2.4.2).
type Message struct {
	To      netip.Addr
	Port    uint16 // UDP destination port; 0 in the course's dialect
	Iface   int
	Payload []byte // valid until the next call of Output
}

// Output fills m with the next message: first the answers to requests, then the destinations in
// their configured order. It returns false if no message is due. A route that changes before it is
// sent is sent in its latest state.
func (s *Speaker) Output(now clock.Time, m *Message) bool {
	if !s.started {
		return false
	}
	s.release(now)
	if len(s.replies) > 0 {
		r := &s.replies[0]
		n := min(len(r.entries), r.outlet.port.most*EntrySize2)
		s.write2(now, r.outlet, Response, r.entries[:n], m)
		if r.entries = r.entries[n:]; len(r.entries) == 0 {
			s.replies = s.replies[1:]
		}
		return true
	}
	for len(s.answers) > 0 {
		if s.next(now, s.answers[0], m) {
			return true
		}
		s.answers = s.answers[1:]
	}
	for _, o := range s.outlets {
		if s.next(now, o, m) {
			return true
		}
	}
	return false
}

func (s *Speaker) next(now clock.Time, o *outlet, m *Message) bool {
	if o.request {
		o.request = false
		s.counters.RequestsOut++
		s.write(now, o, Request, m)
		return true
	}
	for len(o.sending) > 0 || o.begin(&s.table) {
		if s.fill(o); len(s.entries) == 0 {
			continue
		}
		if o.triggered {
			s.counters.TriggeredOut++
		}
		s.write(now, o, Response, m)
		return true
	}
	return false
}

// fill moves routes of the current update to s.entries, at most as many as one message can contain.
func (s *Speaker) fill(o *outlet) {
	s.entries = s.entries[:0]
	room := s.cfg.MaxEntries
	if o.version > 0 {
		room = o.port.most
	}
	var hop netip.Addr
	for len(o.sending) > 0 && room > 0 {
		e, ok := o.entry(o.sending[0])
		if ok && o.port.isIPv6() && e.NextHop != hop {
			if room--; room == 0 {
				return // RFC 2080 §2.1.1: the next hop takes an entry before the route
			}
			hop = e.NextHop
		}
		o.sending = o.sending[1:]
		if ok {
			s.entries = append(s.entries, e)
			room--
		}
	}
}

// write builds a message from s.entries, in the outlet's dialect.
func (s *Speaker) write(now clock.Time, o *outlet, c Command, m *Message) {
	if o.version > 0 {
		s.write2(now, o, c, nil, m)
		return
	}
	p := Packet{Command: c, EntrySize: o.width}
	if c == Response {
		p.Entries = s.entries
		s.count(o, len(p.Entries))
	}
	s.payload = p.Append(s.payload[:0])
	*m = Message{To: o.to.Addr(), Iface: o.iface, Payload: s.payload}
}

// write2 builds a message of RIP version 1 or 2 or RIPng: a request for the whole table, or a
// response. The response contains the encoded entries, or s.entries if encoded is nil.
func (s *Speaker) write2(now clock.Time, o *outlet, c Command, encoded []byte, m *Message) {
	b := appendHeader2(s.payload[:0], c, o.version)
	var key *Key
	if o.version > 1 && len(o.port.Keys) > 0 {
		key = &o.port.Keys[0]
		b = key.appendAuth(b, s.cfg.sequence(now))
	}
	switch {
	case c == Request:
		b = requestAll.Append(b) // RIPng uses the same bytes (RFC 2080 §2.4.1)
	case encoded != nil:
		b = append(b, encoded...)
		s.count(o, len(encoded)/EntrySize2)
	case o.port.isIPv6():
		b = appendEntriesNG(b, s.entries)
		s.count(o, len(s.entries))
	default:
		for i := range s.entries {
			e := s.entries[i].wire(o.version)
			b = e.Append(b)
		}
		s.count(o, len(s.entries))
	}
	if key != nil {
		b = key.seal(b)
	}
	s.payload = b
	*m = Message{To: o.to.Addr(), Port: o.to.Port(), Iface: o.iface, Payload: b}
}

// wire converts the entry for a version. Version 1 has only the address and the metric.
func (e *Entry) wire(version uint8) Entry2 {
	w := Entry2{Family: familyIPv4, Addr: word(e.Prefix.Addr().As4()), Metric: e.Cost}
	if version > 1 {
		w.Tag, w.Mask = e.Tag, maskOf(e.Prefix.Bits())
		if e.NextHop.IsValid() {
			w.NextHop = word(e.NextHop.As4())
		}
	}
	return w
}

// sequence returns the current sequence number (RFC 4822 §2: it never decreases). It counts
// seconds, so it is higher after a restart.
func (c *Config) sequence(now clock.Time) uint32 {
	return c.Sequence + uint32(time.Duration(now)/time.Second)
}

func (s *Speaker) count(o *outlet, entries int) {
	s.counters.ResponsesOut++
	s.counters.EntriesOut += uint64(entries)
	o.port.sent++
	o.port.sentEntries += uint64(entries)
}

// outlet is a destination of messages, with the messages that are due: a neighbor, all routers on a
// link, or the client of a request.
type outlet struct {
	to      netip.AddrPort
	iface   int
	port    *port
	gateway *gateway // in the course's dialect: the neighbor, for the split horizon
	version uint8    // version in the messages, 1 in RIPng; 0 in the course's dialect
	width   int      // in the course's dialect: the entry size in bytes
	leaving bool     // the interface is going down, so announce everything at Infinity
	answer  bool     // the outlet answers one request and is then removed

	request   bool     // a request must be sent
	full      bool     // the whole table must be sent
	changed   []*route // changed routes to announce, in order of change
	released  bool     // the changes may be sent now
	sending   []*route // unsent routes of the current update, sorted
	memory    []*route // memory that triggered updates reuse
	triggered bool     // the update in sending is a triggered update
}

// unicastOutlet returns the outlet of a configured neighbor, or nil if nothing is sent to it.
func (s *Speaker) unicastOutlet(g *gateway) *outlet {
	o := &outlet{iface: g.Iface, port: g.port}
	if g.port.Passive || s.cfg.Dialect != Course && g.port.Send == SendNone {
		return nil
	}
	if s.cfg.Dialect == Course {
		o.to, o.gateway, o.width = netip.AddrPortFrom(g.Addr, 0), g, s.cfg.EntrySize
		return o
	}
	o.to, o.version = netip.AddrPortFrom(g.Addr, g.port.udp()), g.port.version()
	return o
}

// linkOutlet returns the outlet for all routers on a link (RFC 2453 §3.10). It returns nil if the
// link has configured neighbors (RFC 2453 §4.5: "on NBMA networks, unicast addressing may be
// used"), or if nothing is sent there.
func (s *Speaker) linkOutlet(iface int, p *port) *outlet {
	if p.neighborsOnly || p.Passive {
		return nil
	}
	o := &outlet{iface: iface, port: p, version: p.version()}
	if p.isIPv6() && p.Send != SendNone {
		o.to = netip.AddrPortFrom(MulticastNG, PortNG) // the multicast group of RFC 2080 §2.5.2
		return o
	}
	switch p.Send {
	case SendRIP2:
		o.to = netip.AddrPortFrom(Multicast, Port)
	case SendCompatible, SendRIP1:
		o.to = netip.AddrPortFrom(p.broadcast(), Port)
	case SendNone:
		return nil
	}
	return o
}

// version returns the version number of the messages that the interface sends.
func (f *Interface) version() uint8 {
	if f.isIPv6() || f.Send == SendRIP1 {
		return 1
	}
	return 2
}

// scheduleInitial schedules a request and the whole table for a router that is new or running
// again.
func (o *outlet) scheduleInitial() { o.request, o.full, o.leaving = true, true, false }

// cancel cancels everything that is due.
func (o *outlet) cancel() {
	o.request, o.full, o.leaving, o.released = false, false, false, false
	o.changed, o.sending = o.changed[:0], nil
}

// addChanged schedules one route. If the list becomes as long as the table, it schedules the whole
// table instead.
func (o *outlet) addChanged(r *route, tableSize int) {
	if o.full {
		return // the whole table includes the route
	}
	if len(o.changed) < tableSize {
		o.changed = append(o.changed, r)
		return
	}
	o.full, o.changed = true, o.changed[:0]
}

// begin starts the update that is due: the whole table, or otherwise the changes. It returns false
// if no update is due.
func (o *outlet) begin(t *table) bool {
	o.triggered = !o.full
	if o.full {
		o.full, o.released, o.changed = false, false, o.changed[:0]
		o.sending = t.sorted()
		return len(o.sending) > 0
	}
	if !o.released {
		return false
	}
	o.released = false
	o.memory, o.changed = o.changed, o.memory[:0]
	slices.SortFunc(o.memory, compareRoutes)
	o.sending = slices.Compact(o.memory)
	return len(o.sending) > 0
}

// entry returns the entry of a route for this outlet, or false if the outlet omits the route.
func (o *outlet) entry(r *route) (Entry, bool) {
	if r.removed {
		return Entry{}, false
	}
	e := Entry{Prefix: r.prefix, Cost: uint32(r.cost), Tag: r.tag}
	if o.poisons(r) {
		e.Cost = Infinity
	}
	if o.version == 0 {
		// A neighbor with the older entry size gets only /32 routes. Without a mask, it would read
		// a network as the network's first address.
		return e, o.width != OldEntrySize || r.prefix.IsSingleIP()
	}
	if e.Cost < Infinity && r.isOwn() && o.port.isOnLink(r.hop) && !o.port.Addr.IsSingleIP() &&
		(r.own[0].iface == o.iface || !o.port.isIPv6()) {
		e.NextHop = r.hop // the next hop is on this link (RFC 2453 §4.4, RFC 2080 §2.1.1)
	}
	return e, !o.hasVersion1Listeners() || o.port.validForVersion1(r.prefix)
}

// hasVersion1Listeners reports whether a receiver of the messages may support only version 1.
func (o *outlet) hasVersion1Listeners() bool {
	return !o.port.isIPv6() && (o.version == 1 || !o.answer && o.port.Send == SendCompatible)
}

// poisons reports whether the outlet announces a route at Infinity (RFC 2453 §3.4.3, split horizon
// with poisoned reverse). The course's dialect poisons routes that it learned from the same
// neighbor. RIPv2 and RIPng poison routes from the same link.
func (o *outlet) poisons(r *route) bool {
	switch {
	case o.leaving:
		return true
	case r.via == nil:
		return false
	case o.version == 0:
		return r.via == o.gateway
	}
	return r.via.Iface == o.iface
}
