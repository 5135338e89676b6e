package rdt

import (
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// place says which list contains a record.
type place uint8

const (
	placeNone place = iota // delivered or unused packets
	placeSent              // packets that wait for their acknowledgment
	placeLost              // packets that wait for retransmission
	placeCount
)

// record is one packet of the window.
type record struct {
	chunk
	place      place
	prev, next int32
	sentAt     clock.Time // time of the record's last transmission
	serial     uint64     // number of the last transmission in the flow
}

// list is a list of records by index. The index -1 stands for no record.
type list struct{ head, tail int32 }

// flight is the sender's window of unacknowledged packets. All its operations take constant time.
type flight struct {
	ring     []record // the length is a power of two, at least the window
	una, nxt uint32   // first unacknowledged number, and next unused number
	lists    [placeCount]list
}

func newFlight(window int) flight {
	f := flight{ring: make([]record, 1<<bits.Len(uint(window-1)))}
	for i := range f.lists {
		f.lists[i] = list{-1, -1}
	}
	return f
}

// len returns the number of packets in the window.
func (f *flight) len() int { return int(f.nxt - f.una) }

func (f *flight) holds(seq uint32) bool { return seq-f.una < f.nxt-f.una }

func (f *flight) index(seq uint32) int32 { return int32(seq & uint32(len(f.ring)-1)) }

func (f *flight) at(seq uint32) *record { return &f.ring[f.index(seq)] }

// sequence returns the sequence number of the record at index i.
func (f *flight) sequence(i int32) uint32 {
	return f.una + (uint32(i)-f.una)&uint32(len(f.ring)-1)
}

func (f *flight) first(p place) (*record, uint32, bool) {
	i := f.lists[p].head
	if i < 0 {
		return nil, 0, false
	}
	return &f.ring[i], f.sequence(i), true
}

// move moves the record of seq to the end of a list, or out of all lists.
func (f *flight) move(seq uint32, to place) {
	i := f.index(seq)
	f.unlink(i)
	r := &f.ring[i]
	r.place = to
	if to == placeNone {
		return
	}
	l := &f.lists[to]
	r.prev, r.next = l.tail, -1
	if l.tail >= 0 {
		f.ring[l.tail].next = i
	} else {
		l.head = i
	}
	l.tail = i
}

func (f *flight) unlink(i int32) {
	r := &f.ring[i]
	if r.place == placeNone {
		return
	}
	l := &f.lists[r.place]
	if r.prev >= 0 {
		f.ring[r.prev].next = r.next
	} else {
		l.head = r.next
	}
	if r.next >= 0 {
		f.ring[r.next].prev = r.prev
	} else {
		l.tail = r.prev
	}
	r.place = placeNone
}

// push adds k to the window and returns its sequence number.
func (f *flight) push(k chunk) uint32 {
	seq := f.nxt
	f.nxt++
	*f.at(seq) = record{chunk: k}
	return seq
}

func (f *flight) popBefore(seq uint32) {
	for ; f.una != seq; f.una++ {
		f.unlink(f.index(f.una))
	}
}
