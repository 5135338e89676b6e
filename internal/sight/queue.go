package sight

import "slices"

const (
	// shortPile is how many bytes are rather copied than handed on as a pile, and longPile how
	// long a pile may become by that.
	shortPile = 16 << 10
	longPile  = 256 << 10
	// keptPiles is how many empty piles an idle queue keeps, and sparePiles how many there are
	// while an observer is behind.
	keptPiles  = 2
	sparePiles = 64
)

// queue is the piles that wait for an observer, in the order in which they came. A pile is handed
// on as it is: the loop, which fills them, copies a packet once.
type queue struct {
	waiting        []Pile
	spare          []Pile // empty, to be filled again
	packets, bytes int    // that wait
}

func (q *queue) empty() bool { return len(q.waiting) == 0 }

// fit is how many packets of a pile, from its first on, there is room for.
func (q *queue) fit(p *Pile) int {
	n := min(len(p.List), maxWaiting-q.packets)
	if q.bytes+len(p.data) <= MaxPileBytes {
		return n
	}
	room := MaxPileBytes - q.bytes
	at, _ := slices.BinarySearchFunc(p.List[:n], room, func(s Sight, room int) int {
		if s.end <= room {
			return -1
		}
		return 1
	})
	return at
}

// push takes a pile that fits, and gives an empty one for it.
func (q *queue) push(p Pile) Pile {
	q.packets += len(p.List)
	q.bytes += len(p.data)
	if len(p.List) == 0 {
		return p.emptied()
	}
	if last := len(q.waiting) - 1; last >= 0 && len(p.data) <= shortPile &&
		len(q.waiting[last].data)+len(p.data) <= longPile {
		q.waiting[last].add(p)
		return p.emptied()
	}
	q.waiting = append(q.waiting, p)
	last := len(q.spare) - 1
	if last < 0 {
		return Pile{List: make([]Sight, 0, len(p.List)), data: make([]byte, 0, len(p.data))}
	}
	next := q.spare[last]
	q.spare = q.spare[:last]
	return next
}

// pop gives the first pile for one that has been read; an empty one: none waits.
func (q *queue) pop(done Pile) Pile {
	if cap(done.List) > 0 && len(q.spare) < sparePiles {
		q.spare = append(q.spare, done.emptied())
	}
	if q.empty() {
		if len(q.spare) > keptPiles {
			clear(q.spare[keptPiles:]) // the memory goes
			q.spare = q.spare[:keptPiles]
		}
		return Pile{}
	}
	next := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.packets -= len(next.List)
	q.bytes -= len(next.data)
	return next
}
