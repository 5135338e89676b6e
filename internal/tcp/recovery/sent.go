package recovery

import "github.com/tidepool-net/tidepool/internal/clock"

// sentQueue holds a record for each segment between SND.UNA and SND.NXT, in sequence order, in a
// ring of power-of-two size that ids index. A record is in one of three places: in flight (a list
// in the order of transmission, which RACK walks), lost (a list of segments to retransmit, lowest
// first), or sacked (no list). Every move updates byte counts, so Pipe needs no walk.
type sentQueue struct {
	recs          []record
	first, next   uint32 // ids in use are [first, next), modulo 2^32
	lists         [2]idList
	lastLost      uint32 // the record that was found lost last
	bytes         [numPlaces]int
	count         [numPlaces]int
	retransmitted int // segments in flight that were sent more than once
	// transmissions counts all transmissions. An unchanged value shows that nothing was sent.
	transmissions uint64
	cutTo         uint64 // recut has cut the segments below this number
	uneven        bool   // some of these segments have been lost since

	// This is the state for delivery rate samples: how much was delivered, and when. Every record
	// copies it when its segment is sent.
	delivered   uint64
	deliveredAt clock.Time
	firstSentAt clock.Time
	appLimited  uint64 // rate samples are application-limited until delivered passes this
	lost        uint64 // bytes that were ever marked lost
}

type record struct {
	seq         uint64
	sentAt      clock.Time // the last transmission
	delivered   uint64
	deliveredAt clock.Time
	firstSentAt clock.Time
	next, prev  uint32 // neighbors in its list, meaningless at the ends
	skip        uint32 // for a sacked record: number of sacked records from here on
	pipe        uint32 // bytes in flight after it was sent, including it
	lost        uint32 // sentQueue.lost when it was sent
	size        uint16 // length in sequence numbers, FIN included
	place       place
	flags       Flags
}

func (r *record) end() uint64 { return r.seq + uint64(r.size) }

// payload returns how many payload bytes the record covers.
func (r *record) payload() int {
	if r.flags&FIN != 0 {
		return int(r.size) - 1
	}
	return int(r.size)
}

type place uint8

const (
	inFlight place = iota
	lost
	sacked
	numPlaces
)

// Flags are properties of a segment.
type Flags uint8

// The flags. Callers of Push set the exported ones.
const (
	FIN              Flags = 1 << iota // ends with our FIN
	recRetransmitted                   // was sent more than once
	recAppLimited                      // was sent while the application limited the sender
	MTUProbe                           // is larger than the path is known to carry
)

type idList struct {
	head, tail uint32
	n          int
}

// firstRecords is the initial size of the ring: one kilobyte.
const firstRecords = 16

// Empty reports whether nothing is outstanding.
func (q *sentQueue) Empty() bool { return q.first == q.next }

// Lost reports whether any segment waits for retransmission.
func (q *sentQueue) Lost() bool { return q.lists[lost].n > 0 }

// FirstSize returns the payload size of the first record. The queue must not be empty.
func (q *sentQueue) FirstSize() int { return q.at(q.first).payload() }

func (q *sentQueue) len() int             { return int(q.next - q.first) }
func (q *sentQueue) at(id uint32) *record { return &q.recs[id&uint32(len(q.recs)-1)] }
func (q *sentQueue) has(id uint32) bool   { return id-q.first < q.next-q.first }

func (q *sentQueue) push(now clock.Time, seq uint64, size int, flags Flags) {
	if q.len() == len(q.recs) {
		q.grow()
	}
	if q.count[inFlight] == 0 {
		q.firstSentAt, q.deliveredAt = now, now
	}
	if q.appLimited > q.delivered {
		flags |= recAppLimited
	}
	id := q.next
	q.next++
	r := q.at(id)
	*r = record{
		seq: seq, size: uint16(size), sentAt: now, flags: flags, place: inFlight,
		delivered: q.delivered, deliveredAt: q.deliveredAt, firstSentAt: q.firstSentAt,
	}
	q.transmissions++
	q.bytes[inFlight] += size
	q.count[inFlight]++
	r.pipe, r.lost = uint32(q.bytes[inFlight]), uint32(q.lost)
	q.link(&q.lists[inFlight], id, r)
}

func (q *sentQueue) grow() {
	recs := make([]record, max(firstRecords, 2*len(q.recs)))
	for id := q.first; id != q.next; id++ {
		recs[id&uint32(len(recs)-1)] = *q.at(id)
	}
	q.recs = recs
}

func (q *sentQueue) pop() {
	r := q.at(q.first)
	q.detach(q.first, r)
	q.first++
}

// cut removes the first n sequence numbers of the first record.
func (q *sentQueue) cut(n int) {
	r := q.at(q.first)
	r.seq += uint64(n)
	r.size -= uint16(n)
	q.bytes[r.place] -= n
}

// move puts a record into another place.
func (q *sentQueue) move(id uint32, r *record, to place) {
	q.detach(id, r)
	r.place = to
	q.bytes[to] += int(r.size)
	q.count[to]++
	switch to {
	case sacked:
		r.skip = 1
	case lost:
		q.linkLost(id, r)
		q.uneven = q.uneven || r.seq < q.cutTo
	default:
		q.link(&q.lists[to], id, r)
		q.countRetransmitted(r, 1)
	}
}

// countRetransmitted adds n to the count of retransmitted segments in flight, if the record is one.
func (q *sentQueue) countRetransmitted(r *record, n int) {
	if r.flags&recRetransmitted != 0 {
		q.retransmitted += n
	}
}

// resent moves a record to the end of the flight after a retransmission.
func (q *sentQueue) resent(now clock.Time, id uint32, r *record) {
	q.move(id, r, inFlight)
	q.transmissions++
	if q.count[inFlight] == 1 {
		q.firstSentAt, q.deliveredAt = now, now
	}
	r.sentAt = now
	if r.flags&recRetransmitted == 0 {
		r.flags |= recRetransmitted
		q.retransmitted++
	}
	r.flags &^= recAppLimited
	if q.appLimited > q.delivered {
		r.flags |= recAppLimited
	}
	r.delivered, r.deliveredAt, r.firstSentAt = q.delivered, q.deliveredAt, q.firstSentAt
	r.pipe, r.lost = uint32(q.bytes[inFlight]), uint32(q.lost)
}

// restore moves all lost records back into the flight, to their places by time of transmission.
func (q *sentQueue) restore() {
	for q.lists[lost].n > 0 {
		id := q.lists[lost].head
		r := q.at(id)
		q.detach(id, r)
		r.place = inFlight
		q.bytes[inFlight] += int(r.size)
		q.count[inFlight]++
		q.countRetransmitted(r, 1)
		q.linkBySentAt(id, r)
	}
}

// resendLonger marks for retransmission the segments in flight with more than n bytes of data.
func (q *sentQueue) resendLonger(n int) {
	for id := q.first; id != q.next; id++ {
		if r := q.at(id); r.place == inFlight && r.payload() > n {
			q.move(id, r, lost)
		}
	}
}

func (q *sentQueue) onlyFIN() bool {
	return !q.Empty() && q.at(q.first).flags&FIN != 0 && q.at(q.first).payload() == 0
}

// detach removes a record from the counts and the list of its place.
func (q *sentQueue) detach(id uint32, r *record) {
	q.bytes[r.place] -= int(r.size)
	q.count[r.place]--
	if r.place == inFlight {
		q.countRetransmitted(r, -1)
	}
	if r.place != sacked {
		q.unlink(&q.lists[r.place], id, r)
	}
}

func (q *sentQueue) link(l *idList, id uint32, r *record) {
	if l.n == 0 {
		l.head = id
	} else {
		q.at(l.tail).next = id
		r.prev = l.tail
	}
	l.tail = id
	l.n++
}

// linkLost inserts a record into the lost list in sequence order, because the receiver waits for
// the lowest. Losses are nearly always found in that order, so the search starts at the last
// insertion.
func (q *sentQueue) linkLost(id uint32, r *record) {
	l, at := &q.lists[lost], q.lastLost
	q.lastLost = id
	before := func(a, b uint32) bool { return a-q.first < b-q.first }
	switch {
	case l.n == 0 || before(l.tail, id):
		q.link(l, id, r)
		return
	case before(id, l.head):
		q.at(l.head).prev = id
		r.next = l.head
		l.head = id
		l.n++
		return
	}
	if !q.has(at) || q.at(at).place != lost || at == id {
		at = l.head
	}
	for before(id, at) {
		at = q.at(at).prev
	}
	for next := q.at(at).next; before(next, id); next = q.at(at).next {
		at = next
	}
	next := q.at(at).next
	r.prev, r.next = at, next
	q.at(at).next, q.at(next).prev = id, id
	l.n++
}

// linkBySentAt inserts a record into the flight in order of transmission. Restored records are
// older than nearly all others, and come in sequence, so the search starts after the last one
// restored.
func (q *sentQueue) linkBySentAt(id uint32, r *record) {
	l := &q.lists[inFlight]
	later := func(a uint32) bool { return q.at(a).sentAt > r.sentAt }
	switch {
	case l.n == 0 || !later(l.tail):
		q.link(l, id, r)
		return
	case later(l.head):
		q.at(l.head).prev = id
		r.next = l.head
		l.head = id
		l.n++
		return
	}
	at := l.head
	if last := id - 1; q.has(last) && q.at(last).place == inFlight && !later(last) {
		at = last
	}
	for !later(q.at(at).next) {
		at = q.at(at).next
	}
	next := q.at(at).next
	r.prev, r.next = at, next
	q.at(at).next, q.at(next).prev = id, id
	l.n++
}

func (q *sentQueue) unlink(l *idList, id uint32, r *record) {
	l.n--
	if l.n == 0 {
		return
	}
	switch id {
	case l.head:
		l.head = r.next
	case l.tail:
		l.tail = r.prev
	default:
		q.at(r.prev).next = r.next
		q.at(r.next).prev = r.prev
	}
}

// find returns the id of the first record that starts at seq or after it.
func (q *sentQueue) find(seq uint64) uint32 {
	lo, n := q.first, q.next-q.first
	for n > 0 {
		half := n / 2
		if q.at(lo+half).seq < seq {
			lo += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return lo
}
