package rdt

import (
	"math/bits"

	"github.com/tidepool-net/tidepool/internal/clock"
)

// place is which list a record is in.
type place uint8

const (
	placeNone place = iota // delivered, or not in use
	placeSent              // waits for its acknowledgment
	placeLost              // waits to be sent again
	placeCount
)

// record is one packet of the window.
type record struct {
	chunk
	place      place
	prev, next int32
	sentAt     clock.Time // of the last transmission
	serial     uint64     // of the last transmission, among all of the flow
}

// list is a list of records by their indexes; -1 is none.
type list struct{ head, tail int32 }

// flight is the sender's window: what has been sent and not been acknowledged. All of
// its steps take constant time.
type flight struct {
	ring     []record // a power of two, not less than the window
	una, nxt uint32   // the first without acknowledgment, and the next to be used
	lists    [placeCount]list
}

func newFlight(window int) flight {
	f := flight{ring: make([]record, 1<<bits.Len(uint(window-1)))}
	for i := range f.lists {
		f.lists[i] = list{-1, -1}
	}
	return f
}

// len returns how many packets the window holds.
func (f *flight) len() int { return int(f.nxt - f.una) }

// holds reports whether seq is in the window.
func (f *flight) holds(seq uint32) bool { return seq-f.una < f.nxt-f.una }

func (f *flight) index(seq uint32) int32 { return int32(seq & uint32(len(f.ring)-1)) }

func (f *flight) at(seq uint32) *record { return &f.ring[f.index(seq)] }

// sequence returns the number of the record at index i.
func (f *flight) sequence(i int32) uint32 {
	return f.una + (uint32(i)-f.una)&uint32(len(f.ring)-1)
}

// first returns the first record of a list.
func (f *flight) first(p place) (*record, uint32, bool) {
	i := f.lists[p].head
	if i < 0 {
		return nil, 0, false
	}
	return &f.ring[i], f.sequence(i), true
}

// move puts the record of seq at the end of a list, or in none.
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

// push takes k into the window and returns its sequence number.
func (f *flight) push(k chunk) uint32 {
	seq := f.nxt
	f.nxt++
	*f.at(seq) = record{chunk: k}
	return seq
}

// popBefore forgets everything before seq.
func (f *flight) popBefore(seq uint32) {
	for ; f.una != seq; f.una++ {
		f.unlink(f.index(f.una))
	}
}
