package rip

import (
	"net/netip"
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
