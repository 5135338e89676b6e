package netem

import "github.com/tidepool-net/tidepool/internal/clock"

// Packet is one packet inside a link: a copy of its bytes.
type Packet struct {
	data    []byte
	tag     uint64
	entered clock.Time // when it came
	at      clock.Time // when it arrives
	order   uint64     // among those that arrive at the same time
	next    *Packet    // in a free list
}

// Bytes returns the packet, for a queue that looks into it or marks it.
func (p *Packet) Bytes() []byte { return p.data }

// Entered returns when the packet came, which sojourn times are measured from.
func (p *Packet) Entered() clock.Time { return p.entered }

// minPacketBytes is the least memory that a packet's copy gets, so that a small
// one's can be used for a full one.
const minPacketBytes = 1536

// store keeps packets for their memory.
type store struct {
	free *Packet
	lent *Packet // given out by Output, free at the next Input or Advance
	last *Packet // of lent
	// What is neither free nor lent.
	packets, bytes int
}

// take returns a packet of n bytes whose content is undefined.
func (s *store) take(n int) *Packet {
	p := s.free
	if p == nil {
		p = &Packet{data: make([]byte, max(n, minPacketBytes))}
	} else {
		s.free, p.next = p.next, nil
	}
	if cap(p.data) < n {
		p.data = make([]byte, n)
	}
	p.data = p.data[:n]
	s.packets++
	s.bytes += n
	return p
}

// give takes a packet's memory back.
func (s *store) give(p *Packet) {
	s.packets--
	s.bytes -= len(p.data)
	p.next, s.free = s.free, p
}

// lend has a packet's memory come back with the next reclaim.
func (s *store) lend(p *Packet) {
	s.packets--
	s.bytes -= len(p.data)
	if s.lent == nil {
		s.last = p
	}
	p.next, s.lent = s.lent, p
}

// reclaim takes back what was lent.
func (s *store) reclaim() {
	if s.lent == nil {
		return
	}
	s.last.next = s.free
	s.free, s.lent, s.last = s.lent, nil, nil
}

// packetRing is a queue of packets that grows as it must.
type packetRing struct {
	slots []*Packet // a power of two of them
	head  int
	n     int
	bytes int
}

func (r *packetRing) push(p *Packet) {
	if r.n == len(r.slots) {
		grown := make([]*Packet, max(16, 2*r.n))
		for i := range r.n {
			grown[i] = r.slots[(r.head+i)&(len(r.slots)-1)]
		}
		r.slots, r.head = grown, 0
	}
	r.slots[(r.head+r.n)&(len(r.slots)-1)] = p
	r.n++
	r.bytes += len(p.data)
}

// first returns the oldest packet, nil when there is none.
func (r *packetRing) first() *Packet {
	if r.n == 0 {
		return nil
	}
	return r.slots[r.head]
}

// newest returns the packet that was pushed last; there must be one.
func (r *packetRing) newest() *Packet {
	return r.slots[(r.head+r.n-1)&(len(r.slots)-1)]
}

// pop removes the oldest packet; there must be one.
func (r *packetRing) pop() *Packet {
	p := r.slots[r.head]
	r.slots[r.head] = nil
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	r.bytes -= len(p.data)
	return p
}
