package rip

import (
	"net/netip"
	"slices"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// Message is one message to send.
type Message struct {
	To      netip.Addr
	Iface   int
	Payload []byte // lent until the next call of Output
}

// Output fills m with the next message, neighbours in their configured order;
// false: there is none. What is not fetched stays, and a change of a route that
// still waits is sent as it then is.
func (s *Speaker) Output(_ clock.Time, m *Message) bool {
	if !s.started {
		return false
	}
	for _, n := range s.neighbors {
		p, ok := s.next(n)
		if !ok {
			continue
		}
		s.payload = p.Append(s.payload[:0])
		*m = Message{To: n.Addr, Iface: n.Iface, Payload: s.payload}
		return true
	}
	return false
}

// next returns the next message that is owed to a neighbour.
func (s *Speaker) next(n *neighbor) (Packet, bool) {
	if n.request {
		n.request = false
		s.counters.RequestsOut++
		return Packet{Command: Request}, true
	}
	for len(n.sending) > 0 || n.begin(s.table.sorted) {
		if s.fill(n); len(s.entries) == 0 {
			continue
		}
		s.counters.ResponsesOut++
		s.counters.EntriesOut += uint64(len(s.entries))
		if n.news {
			s.counters.TriggeredOut++
		}
		return Packet{Command: Response, EntrySize: n.entrySize, Entries: s.entries}, true
	}
	return Packet{}, false
}

// fill takes as many routes as a message holds off the update that is under
// way. A neighbour that speaks the older width is told of single addresses only:
// without its mask a network would be read as its first address.
func (s *Speaker) fill(n *neighbor) {
	s.entries = s.entries[:0]
	for len(n.sending) > 0 && len(s.entries) < s.cfg.MaxEntries {
		r := n.sending[0]
		n.sending = n.sending[1:]
		if r.forgotten || n.entrySize == OldEntrySize && !r.prefix.IsSingleIP() {
			continue
		}
		s.entries = append(s.entries, Entry{Prefix: r.prefix, Cost: n.cost(r)})
	}
}

// cost is what a neighbour is told that a route costs. RFC 2453 §3.4.3, split
// horizon with poisoned reverse: who we learned it from hears Infinity.
func (n *neighbor) cost(r *route) uint32 {
	if r.via == n || n.leaving {
		return Infinity
	}
	return uint32(r.cost)
}

// introduce owes a neighbour that we have not talked with a request and the
// whole table.
func (n *neighbor) introduce() { n.request, n.full, n.leaving = true, true, false }

// tell owes a neighbour one route. The list never grows beyond the table: where
// it would, the whole table says it shorter.
func (n *neighbor) tell(r *route, tableSize int) {
	if len(n.changed) < tableSize {
		n.changed = append(n.changed, r)
		return
	}
	n.full, n.changed = true, n.changed[:0]
}

// begin starts the update that is owed, the whole table before news of it;
// false: none is.
func (n *neighbor) begin(all []*route) bool {
	n.news = !n.full
	if n.full {
		n.full, n.changed = false, n.changed[:0]
		n.sending = slices.Clone(all)
		return len(all) > 0
	}
	n.sending = slices.Clone(n.changed)
	n.changed = n.changed[:0]
	slices.SortFunc(n.sending, compareRoutes)
	n.sending = slices.Compact(n.sending)
	return len(n.sending) > 0
}
