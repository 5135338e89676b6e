package observe

import "github.com/tidepool-net/tidepool/internal/capture"

// Recorder is a connection's recorder: its last segments, in a ring that is allocated once.
type Recorder struct {
	ring []Packet
	data []byte // HeaderBytes for each
	next int
	full bool
}

// NewRecorder returns a recorder of so many segments.
func NewRecorder(segments int) *Recorder {
	return &Recorder{
		ring: make([]Packet, segments), data: make([]byte, segments*capture.HeaderBytes),
	}
}

// Put keeps a segment, in the place of the oldest if there is no other.
func (r *Recorder) Put(s *Packet, header []byte) {
	one := &r.ring[r.next]
	*one = *s
	one.begin = r.next * capture.HeaderBytes
	one.end = one.begin + copy(r.data[one.begin:one.begin+capture.HeaderBytes], header)
	if r.next++; r.next == len(r.ring) {
		r.next, r.full = 0, true
	}
}

// Batch is a copy of what it has, in the order in which it came; of a nil Recorder nothing.
func (r *Recorder) Batch() (p Batch) {
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
