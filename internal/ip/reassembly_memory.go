package ip

import (
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/clock"
)

const (
	// datagramBytes is the memory of a datagram besides its pages: its two sets, and its entries in
	// maps and lists.
	datagramBytes = 3 << 10
	// keptPages limits the pages that are kept for later datagrams: those of two long ones.
	// keptDatagrams limits the datagrams.
	keptPages     = 64
	keptDatagrams = 32
)

// source has the incomplete datagrams of one source, and their sums.
type source struct {
	addr  netip.Addr // address that origin returns
	bytes int
	count int
	ages  queue
}

// links are a datagram's neighbors in a queue.
type links struct{ older, newer *datagram }

// queue is a list of datagrams in the order of arrival.
type queue struct{ oldest, newest *datagram }

// push appends d. The function at returns the links of a datagram in this queue.
func (q *queue) push(d *datagram, at func(*datagram) *links) {
	*at(d) = links{older: q.newest}
	if q.newest != nil {
		at(q.newest).newer = d
	} else {
		q.oldest = d
	}
	q.newest = d
}

func (q *queue) remove(d *datagram, at func(*datagram) *links) {
	l := *at(d)
	if l.older != nil {
		at(l.older).newer = l.newer
	} else {
		q.oldest = l.newer
	}
	if l.newer != nil {
		at(l.newer).older = l.older
	} else {
		q.newest = l.older
	}
	*at(d) = links{}
}

func byAge(d *datagram) *links  { return &d.age }
func byPeer(d *datagram) *links { return &d.peer }

// begin adds a datagram, and evicts others if necessary.
func (r *Reassembler) begin(now clock.Time, iface int, key fragmentKey) *datagram {
	from := origin(key.src)
	s := r.sources[from]
	if s == nil {
		s = take(&r.idleSources)
		s.addr = from
		r.sources[from] = s
	}
	s.count++ // must be first: evicting the source's last datagram would remove the source
	r.evict(s, nil, datagramBytes, 1)
	s.count--
	d := take(&r.idleDatagrams)
	d.key, d.arrived, d.iface, d.source = key, now, iface, s
	r.charge(d, datagramBytes)
	s.count++
	r.datagrams[key] = d
	r.ages[key.family()].push(d, byAge)
	s.ages.push(d, byPeer)
	return d
}

// origin returns the address under which a datagram's source is counted. For IPv6 it is the /64
// network, because one host can use all addresses of such a network.
func origin(src netip.Addr) netip.Addr {
	if src.Is6() && !src.IsLinkLocalUnicast() {
		network, _ := src.Prefix(64) // never fails, because the length is valid
		return network.Addr()
	}
	return src
}

// admit allocates the pages for n bytes of payload at an offset.
func (r *Reassembler) admit(d *datagram, at, n int) {
	first, last := at/pageBytes, (at+n-1)/pageBytes
	need := 0
	for i := first; i <= last; i++ {
		if d.pages[i] == nil {
			need += pageBytes
		}
	}
	if need == 0 {
		return
	}
	r.evict(d.source, d, need, 0)
	for i := first; i <= last; i++ {
		if d.pages[i] == nil {
			d.pages[i] = take(&r.pages)
		}
	}
	r.charge(d, need)
}

// charge adds to the memory counters.
func (r *Reassembler) charge(d *datagram, n int) {
	d.charge += n
	d.source.bytes += n
	r.info.Bytes += n
}

// evict makes room for n more bytes and for more datagrams of a source. If the source would use
// more than half of a limit, evict removes the source's oldest datagrams, and otherwise the oldest
// of all. It never evicts keep, which needs the room.
func (r *Reassembler) evict(s *source, keep *datagram, n, more int) {
	for s.bytes+n > r.cfg.MaxBytes/2 || s.ages.oldest != nil && s.count > r.cfg.MaxDatagrams/2 {
		if !r.evictOne(s.ages.first(keep, byPeer)) {
			break
		}
	}
	for r.info.Bytes+n > r.cfg.MaxBytes || len(r.datagrams)+more > r.cfg.MaxDatagrams {
		d, six := r.ages[0].first(keep, byAge), r.ages[1].first(keep, byAge)
		if d == nil || six != nil && six.arrived < d.arrived {
			d = six
		}
		if !r.evictOne(d) {
			break
		}
	}
}

// first returns the oldest datagram except keep; nil: none.
func (q *queue) first(keep *datagram, at func(*datagram) *links) *datagram {
	if d := q.oldest; d == nil || d != keep {
		return d
	}
	return at(keep).newer
}

// evictOne discards a datagram, and returns false if d is nil.
func (r *Reassembler) evictOne(d *datagram) bool {
	if d == nil {
		return false
	}
	if d.refused == DropNone {
		r.info.Evicted++
		r.discard(d, DropFragmentEvicted)
	}
	r.release(d)
	return true
}

// release removes a datagram and keeps its memory for later ones.
func (r *Reassembler) release(d *datagram) {
	r.strip(d)
	s := d.source
	r.charge(d, -d.charge)
	s.count--
	s.ages.remove(d, byPeer)
	r.ages[d.key.family()].remove(d, byAge)
	delete(r.datagrams, d.key)
	if s.count == 0 {
		delete(r.sources, s.addr)
		r.idleSources = append(r.idleSources, s)
	}
	r.idleDatagrams = append(r.idleDatagrams, d)
	if len(r.datagrams) == 0 {
		trim(&r.pages, keptPages)
		trim(&r.idleDatagrams, keptDatagrams)
		trim(&r.idleSources, keptDatagrams)
	}
}

// strip frees everything of a datagram except its entry.
func (r *Reassembler) strip(d *datagram) {
	freed := 0
	for i := range d.pages[:(d.reach+pageBytes-1)/pageBytes] {
		if p := d.pages[i]; p != nil {
			r.pages = append(r.pages, p)
			d.pages[i] = nil
			freed += pageBytes
		}
	}
	r.charge(d, -freed)
	d.covered.clear(d.reach)
	d.begins.clear(d.reach)
	d.refused, d.count, d.bytes, d.reach, d.end = DropNone, 0, 0, 0, 0
	d.first, d.ecn, d.headerLen = 0, 0, 0
}

// take returns an element of a free list, or a new one.
func take[T any](free *[]*T) *T {
	n := len(*free)
	if n == 0 {
		return new(T)
	}
	v := (*free)[n-1]
	(*free)[n-1] = nil
	*free = (*free)[:n-1]
	return v
}

// trim shortens a free list.
func trim[T any](free *[]*T, most int) {
	if len(*free) > most {
		clear((*free)[most:])
		*free = (*free)[:most]
	}
}
