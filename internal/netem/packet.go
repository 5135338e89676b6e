package netem

import "github.com/tidepool-net/tidepool/internal/clock"

// Packet is one packet inside a link: a copy of its bytes.
type Packet struct {
	data    []byte
	tag     uint64
	entered clock.Time // time of arrival at the link
	at      clock.Time // time of arrival at the other end
	order   uint64     // order among packets that arrive at the same time
	next    *Packet    // next packet in a free list
}

// These are the two sizes of memory for a packet's bytes. Acknowledgments use the small size, so
// that they are close together and leave the large size to full packets. Longer packets are
// allocated separately.
const (
	smallBytes = 192
	fullBytes  = 1536
)

// slab is the number of packets that the pool allocates at a time. They are stored apart from their
// bytes, which are rarely read before the packet arrives. So times and tags fit in the processor's
// cache.
const slab = 32

// Pool is the memory for packets that the links of one owner share. A packet that one link returns
// and another accepts, as in a router, is not copied.
type Pool struct {
	small, full *Packet // free packets
	fresh       []Packet
	lender      *store // link that last lent packets
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

// store holds the packets of a link.
type store struct {
	pool *Pool
	// lent has the packets that Output has returned. They become free at the next Input or Advance,
	// unless another link has adopted them. first is the index where adopt continues its search.
	lent  []*Packet
	first int
	// packets is the number of packets that are neither free nor lent, and bytes is the number of
	// their bytes.
	packets, bytes int
}

func (s *store) take(n int) *Packet {
	p := s.pool.take(n)
	s.packets++
	s.bytes += n
	return p
}

// adopt returns the packet that another link of the pool has lent and whose bytes are b; nil if
// there is no such packet. It searches in the order of lending.
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

func (s *store) give(p *Packet) {
	s.packets--
	s.bytes -= len(p.data)
	s.pool.put(p)
}

// lend frees a packet at the next reclaim.
func (s *store) lend(p *Packet) {
	s.packets--
	s.bytes -= len(p.data)
	s.lent = append(s.lent, p)
	s.pool.lender = s
}

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

// packetRing is a queue of packets that grows on demand.
type packetRing struct {
	slots []*Packet // the length is a power of two
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

func (r *packetRing) first() *Packet {
	if r.n == 0 {
		return nil
	}
	return r.slots[r.head]
}

func (r *packetRing) newest() *Packet {
	return r.slots[(r.head+r.n-1)&(len(r.slots)-1)]
}

func (r *packetRing) pop() *Packet {
	p := r.slots[r.head]
	r.slots[r.head] = nil
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	r.bytes -= len(p.data)
	return p
}
