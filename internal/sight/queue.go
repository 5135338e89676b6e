package sight

import "slices"

const (
	// maxWaiting is how many packets may wait for one observer.
	maxWaiting = 1 << 15
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
	waiting []Pile
	packets int    // that wait
	spare   []Pile // empty, to be filled again
	held    int    // bytes of memory, of both lists
}

func (q *queue) empty() bool { return len(q.waiting) == 0 }

// fits reports whether a pile's packets may wait too.
func (q *queue) fits(p *Pile) bool { return q.packets+len(p.List) <= maxWaiting }

// first is the oldest packet that waits.
func (q *queue) first() *Sight { return &q.waiting[0].List[0] }

// push takes a pile with packets, and gives an empty one for it.
func (q *queue) push(p Pile) Pile {
	q.packets += len(p.List)
	if last := len(q.waiting) - 1; last >= 0 && len(p.data) <= shortPile &&
		len(q.waiting[last].data)+len(p.data) <= longPile {
		before := q.waiting[last].memory()
		q.waiting[last].add(p)
		q.held += q.waiting[last].memory() - before
		return p.emptied()
	}
	q.waiting = append(q.waiting, p)
	q.held += p.memory()
	last := len(q.spare) - 1
	if last < 0 {
		return Pile{List: make([]Sight, 0, len(p.List)), data: make([]byte, 0, len(p.data))}
	}
	next := q.spare[last]
	q.spare = q.spare[:last]
	q.held -= next.memory()
	return next
}

// pop gives the first pile for one that has been read; an empty one: none waits.
func (q *queue) pop(done Pile) Pile {
	if cap(done.List) > 0 && len(q.spare) < sparePiles {
		done = done.emptied()
		q.spare = append(q.spare, done)
		q.held += done.memory()
	}
	if q.empty() {
		q.trim(keptPiles)
		return Pile{}
	}
	return q.drop()
}

// drop removes the first pile.
func (q *queue) drop() Pile {
	p := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.held -= p.memory()
	q.packets -= len(p.List)
	return p
}

// trim frees the empty piles but for a few.
func (q *queue) trim(keep int) {
	for len(q.spare) > keep {
		last := len(q.spare) - 1
		q.held -= q.spare[last].memory()
		q.spare[last] = Pile{}
		q.spare = q.spare[:last]
	}
}
