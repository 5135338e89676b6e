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

// The memory for a packet's bytes comes in two sizes, so that an acknowledgment takes none that
// a full packet could use, and many of them lie close together. What is longer has its own.
const (
	smallBytes = 192
	fullBytes  = 1536
)

// slab is how many packets the pool makes at a time. They lie apart from their bytes, which
// nobody looks at until they arrive: when and where to go is in the processor's cache then.
const slab = 32

// Pool is memory for the packets of links that one owner has. What one of them gives out and
// another takes in, as a router passes it on, goes over as it is.
type Pool struct {
	small, full *Packet // free ones
	fresh       []Packet
	lender      *store // who has lent packets last
}

// take returns a packet of n bytes whose content is undefined.
func (l *Pool) take(n int) *Packet {
	free, size := &l.full, fullBytes
	if n <= smallBytes {
		free, size = &l.small, smallBytes
	}
	p := *free
	if p == nil {
		if len(l.fresh) == 0 {
			l.fresh = make([]Packet, slab)
		}
		p, l.fresh = &l.fresh[0], l.fresh[1:]
		p.data = make([]byte, size)
	} else {
		*free, p.next = p.next, nil
	}
	if cap(p.data) < n {
		p.data = make([]byte, n)
	}
	p.data = p.data[:n]
	return p
}

func (l *Pool) put(p *Packet) {
	free := &l.full
	if cap(p.data) < fullBytes {
		free = &l.small
	}
	p.next, *free = *free, p
}

// store is a link's packets.
type store struct {
	pool *Pool
	// What Output has given out: it is free at the next Input or Advance, unless it was passed
	// on. The first of lent may have been passed on, or not be asked for any more.
	lent  []*Packet
	first int
	// What is neither free nor lent.
	packets, bytes int
}

func (s *store) take(n int) *Packet {
	p := s.pool.take(n)
	s.packets++
	s.bytes += n
	return p
}

// adopt returns the packet that another link of the pool has lent and b is all of; nil: it is
// not such a one. It looks for them in the order in which they were lent.
func (s *store) adopt(b []byte) *Packet {
	from := s.pool.lender
	if from == nil || from == s {
		return nil
	}
	for from.first < len(from.lent) {
		p := from.lent[from.first]
		from.first++
		if len(p.data) >= len(b) && &p.data[0] == &b[0] {
			from.lent[from.first-1] = nil
			p.data = p.data[:len(b)]
			s.packets++
			s.bytes += len(b)
			return p
		}
	}
	return nil
}

// give takes a packet's memory back.
func (s *store) give(p *Packet) {
	s.packets--
	s.bytes -= len(p.data)
	s.pool.put(p)
}

// lend has a packet's memory come back with the next reclaim.
func (s *store) lend(p *Packet) {
	s.packets--
	s.bytes -= len(p.data)
	s.lent = append(s.lent, p)
	s.pool.lender = s
}

// reclaim takes back what was lent.
func (s *store) reclaim() {
	if len(s.lent) == 0 {
		return
	}
	for i, p := range s.lent {
		if p != nil {
			s.pool.put(p)
			s.lent[i] = nil
		}
	}
	s.lent, s.first = s.lent[:0], 0
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
