package sight

import "github.com/tidepool-net/tidepool/internal/capture"

// Flight is a connection's recorder: its last segments, in a ring that is allocated once.
type Flight struct {
	ring []Sight
	data []byte // HeaderBytes for each
	next int
	full bool
}

// NewFlight returns a recorder of so many segments.
func NewFlight(segments int) *Flight {
	return &Flight{
		ring: make([]Sight, segments), data: make([]byte, segments*capture.HeaderBytes),
	}
}

// Put keeps a segment, in the place of the oldest if there is no other.
func (r *Flight) Put(s *Sight, header []byte) {
	one := &r.ring[r.next]
	*one = *s
	one.begin = r.next * capture.HeaderBytes
	one.end = one.begin + copy(r.data[one.begin:one.begin+capture.HeaderBytes], header)
	if r.next++; r.next == len(r.ring) {
		r.next, r.full = 0, true
	}
}

// Pile is a copy of what it has, in the order in which it came; of a nil Flight nothing.
func (r *Flight) Pile() (p Pile) {
	if r == nil {
		return p
	}
	p.data = append(p.data, r.data...)
	if r.full {
		p.List = append(p.List, r.ring[r.next:]...)
	}
	p.List = append(p.List, r.ring[:r.next]...)
	return p
}
