package hub

import (
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/ip"
	protocol "github.com/tidepool-net/tidepool/internal/rip"
)

// RIP is the state of a student's RIP, taken from the student's messages.
type RIP struct {
	Request  time.Time `json:"request,omitzero"`  // time of the last request
	Response time.Time `json:"response,omitzero"` // time of the last response
	// routes in the student's subnet, as last announced
	Routes  []string `json:"routes"`
	OldSize bool     `json:"old_size"` // the entries have 8 bytes
}

// filterRIP checks a RIP message and removes routes to other students' networks. It does not count
// unreachable routes as violations, because poisoned reverse announces them. It returns nil if it
// refuses the whole message.
func (h *Hub) filterRIP(s *student, head *ip.Header, payload []byte, now time.Time) []byte {
	if head.Dst != h.router(s.Slot) {
		s.refuse(refusedRIPTo)
		return nil
	}
	var scratch [protocol.MaxEntries]protocol.Entry
	m, ok := protocol.ParsePacket(payload, scratch[:])
	if !ok || head.IsFragment() {
		s.refuse(refusedRIP)
		return nil
	}
	if m.Command == protocol.Request {
		s.rip.Request = now
	} else {
		var routes []string
		s.rip.Response = now
		s.rip.OldSize = m.EntrySize == protocol.OldEntrySize
		own := h.subnet(s.Slot)
		m.Entries = slices.DeleteFunc(m.Entries, func(e protocol.Entry) bool {
			within := e.Prefix.Bits() >= own.Bits() && own.Contains(e.Prefix.Addr())
			switch {
			case within && e.Cost < protocol.Infinity:
				routes = append(routes, e.Prefix.String())
			case !within && e.Cost < protocol.Infinity:
				s.refuse(refusedRoute)
			}
			return !within
		})
		if len(routes) > 0 { // a triggered update may contain only other students' networks
			s.rip.Routes = routes
		}
	}
	head.TotalLen = head.Size()
	message := m.Append(nil)
	head.TotalLen += len(message)
	return append(head.Append(nil), message...)
}
