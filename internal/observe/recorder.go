package observe

import "github.com/tidepool-net/tidepool/internal/capture"

// Recorder keeps the last segments of a connection in a ring. The ring is allocated once.
type Recorder struct {
	ring []Packet
	data []byte // HeaderBytes bytes for each segment
	next int
	full bool
}

// NewRecorder returns a recorder for this many segments.
func NewRecorder(segments int) *Recorder {
	return &Recorder{
		ring: make([]Packet, segments), data: make([]byte, segments*capture.HeaderBytes),
	}
}

// Put records a segment and overwrites the oldest if the ring is full.
func (r *Recorder) Put(s *Packet, header []byte) {
	one := &r.ring[r.next]
	*one = *s
	one.begin = r.next * capture.HeaderBytes
	one.end = one.begin + copy(r.data[one.begin:one.begin+capture.HeaderBytes], header)
	if r.next++; r.next == len(r.ring) {
		r.next, r.full = 0, true
	}
}

// Batch returns a copy of the recorded segments, the oldest first. A nil Recorder has none.
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
