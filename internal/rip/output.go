package rip

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Message is one message to send.
type Message struct {
	To      netip.Addr
	Port    uint16 // of UDP, from our 520; 0 in the course's dialect
	Iface   int
	Payload []byte // lent until the next call of Output
}

// Output fills m with the next message, destinations in their configured order and
// before them who has asked; false: there is none. What is not fetched stays, and a
// change of a route that still waits is sent as it then is.
func (s *Speaker) Output(now clock.Time, m *Message) bool {
	if !s.started {
		return false
	}
	s.release(now)
	if len(s.replies) > 0 {
		r := &s.replies[0]
		n := min(len(r.entries), r.outlet.port.most)
		s.write2(now, r.outlet, Packet2{Command: Response, Entries: r.entries[:n]}, m)
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

// next fills m with the next message that is owed to an outlet.
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
		if o.news {
			s.counters.TriggeredOut++
		}
		s.write(now, o, Response, m)
		return true
	}
	return false
}

// fill takes as many routes as a message holds off the update that is under way.
func (s *Speaker) fill(o *outlet) {
	s.entries = s.entries[:0]
	most := s.cfg.MaxEntries
	if o.version > 0 {
		most = o.port.most
	}
	for len(o.sending) > 0 && len(s.entries) < most {
		r := o.sending[0]
		o.sending = o.sending[1:]
		if e, ok := o.entry(r); ok {
			s.entries = append(s.entries, e)
		}
	}
}

// write makes a message of s.entries, in the outlet's dialect.
func (s *Speaker) write(now clock.Time, o *outlet, c Command, m *Message) {
	if o.version > 0 {
		s.write2(now, o, Packet2{Command: c}, m)
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

// write2 makes a message of version 1 or 2: a request for everything, a response of
// p's entries, or, when it has none, of s.entries.
func (s *Speaker) write2(now clock.Time, o *outlet, p Packet2, m *Message) {
	b := appendHeader2(s.payload[:0], p.Command, o.version)
	var key *Key
	if o.version > 1 && len(o.port.Keys) > 0 {
		key = &o.port.Keys[0]
		b = key.appendAuth(b, s.sequence(now))
	}
	switch {
	case p.Command == Request:
		b = askForAll.Append(b)
	case p.Entries != nil:
		for i := range p.Entries {
			b = p.Entries[i].Append(b)
		}
		s.count(o, len(p.Entries))
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

// wire is the entry as a version says it; version 1 has no more than address and metric.
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

// sequence is the sequence number of what is sent now (RFC 4822 §2: it never goes
// back). Seconds, so that it is further on after a restart than it was before.
func (s *Speaker) sequence(now clock.Time) uint32 {
	return s.cfg.Sequence + uint32(time.Duration(now)/time.Second)
}

// count counts a response.
func (s *Speaker) count(o *outlet, entries int) {
	s.counters.ResponsesOut++
	s.counters.EntriesOut += uint64(entries)
	o.port.sent++
	o.port.sentEntries += uint64(entries)
}

// outlet is one destination of our messages and what it is still to be sent: a
// neighbour, everybody on a link, or who has asked.
type outlet struct {
	to      netip.AddrPort
	iface   int
	port    *port
	gateway *gateway // course: the neighbour, whose own routes are poisoned for it alone
	version uint8    // of RIP; 0 in the course's dialect
	width   int      // course: bytes of an entry
	leaving bool     // the interface is going down: everything is beyond Infinity there
	answer  bool     // somebody's who has asked: it ends with its last message

	request  bool     // owed: a request
	full     bool     // owed: the whole table
	changed  []*route // owed: news, in the order of its arrival
	released bool     // the news may go
	sending  []*route // the update that is under way, sorted; what is left of it
	memory   []*route // sending's, when it is news
	news     bool     // sending is a triggered update
}

// unicast is the way to a configured neighbour, nil: nothing is sent there.
func (s *Speaker) unicast(g *gateway) *outlet {
	o := &outlet{iface: g.Iface, port: g.port}
	if g.port.Passive || s.cfg.Dialect == RIPv2 && g.port.Send == SendNone {
		return nil
	}
	if s.cfg.Dialect == Course {
		o.to, o.gateway, o.width = netip.AddrPortFrom(g.Addr, 0), g, s.cfg.EntrySize
		return o
	}
	o.to, o.version = netip.AddrPortFrom(g.Addr, Port), g.port.Send.version()
	return o
}

// everybody is the way to all on a link (RFC 2453 §3.10), nil: there is none, because
// the neighbours there are configured (RFC 2453 §4.5: "on NBMA networks, unicast
// addressing may be used"), or because nothing is sent.
func (s *Speaker) everybody(iface int, p *port) *outlet {
	if p.listed || p.Passive {
		return nil
	}
	o := &outlet{iface: iface, port: p, version: p.Send.version()}
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

func (m SendMode) version() uint8 {
	if m == SendRIP1 {
		return 1
	}
	return 2
}

// introduce owes somebody that we have not talked with a request and the whole table.
func (o *outlet) introduce() { o.request, o.full, o.leaving = true, true, false }

// silence forgets what is owed.
func (o *outlet) silence() {
	o.request, o.full, o.leaving, o.released = false, false, false, false
	o.changed, o.sending = o.changed[:0], nil
}

// owe owes one route. The list never grows beyond the table: where it would, the whole
// table says it shorter.
func (o *outlet) owe(r *route, tableSize int) {
	if o.full {
		return // it is in there
	}
	if len(o.changed) < tableSize {
		o.changed = append(o.changed, r)
		return
	}
	o.full, o.changed = true, o.changed[:0]
}

// begin starts the update that is owed, the whole table before news of it;
// false: none is.
func (o *outlet) begin(t *table) bool {
	o.news = !o.full
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

// entry is what is said of a route there; false: nothing.
func (o *outlet) entry(r *route) (Entry, bool) {
	if r.forgotten {
		return Entry{}, false
	}
	e := Entry{Prefix: r.prefix, Cost: uint32(r.cost), Tag: r.tag}
	if o.poisons(r) {
		e.Cost = Infinity
	}
	if o.version == 0 {
		// A neighbour that speaks the older width is told of single addresses only:
		// without its mask a network would be read as its first address.
		return e, o.width != OldEntrySize || r.prefix.IsSingleIP()
	}
	if e.Cost < Infinity && r.isOwn() && o.port.isOnLink(r.hop) && o.port.Addr.Bits() < 32 {
		e.NextHop = r.hop // RFC 2453 §4.4: whoever leads there is on this very link
	}
	return e, !o.hasOldListeners() || o.port.tellable(r.prefix)
}

// hasOldListeners reports whether who hears our messages may know version 1 alone.
func (o *outlet) hasOldListeners() bool {
	return o.version == 1 || !o.answer && o.port.Send == SendCompatible
}

// poisons reports whether a route is told as out of reach. RFC 2453 §3.4.3, split horizon
// with poisoned reverse: the course's neighbour hears so of what it has told us, and a
// link of RIPv2 of what leads back into it.
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
