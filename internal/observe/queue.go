package observe

import "slices"

const (
	// maxWaiting is how many packets may wait for one observer.
	maxWaiting = 1 << 15
	// shortBatch is how many bytes are rather copied than handed on as a batch, and longBatch how
	// long a batch may become by that.
	shortBatch = 16 << 10
	longBatch  = 256 << 10
	// keptBatchs is how many empty batches an idle queue keeps, and spareBatchs how many there are
	// while an observer is behind.
	keptBatchs  = 2
	spareBatchs = 64
)

// queue is the batches that wait for an observer, in the order in which they came. A batch is
// handed on as it is: the loop, which fills them, copies a packet once.
type queue struct {
	waiting []Batch
	packets int     // that wait
	spare   []Batch // empty, to be filled again
	held    int     // bytes of memory, of both lists
}

func (q *queue) empty() bool { return len(q.waiting) == 0 }

// fits reports whether a batch's packets may wait too.
func (q *queue) fits(p *Batch) bool { return q.packets+len(p.List) <= maxWaiting }

// first is the oldest packet that waits.
func (q *queue) first() *Packet { return &q.waiting[0].List[0] }

// push takes a batch with packets, and gives an empty one for it.
func (q *queue) push(p Batch) Batch {
	q.packets += len(p.List)
	if last := len(q.waiting) - 1; last >= 0 && len(p.data) <= shortBatch &&
		len(q.waiting[last].data)+len(p.data) <= longBatch {
		before := q.waiting[last].memory()
		q.waiting[last].add(p)
		q.held += q.waiting[last].memory() - before
		return p.emptied()
	}
	q.waiting = append(q.waiting, p)
	q.held += p.memory()
	last := len(q.spare) - 1
	if last < 0 {
		return Batch{List: make([]Packet, 0, len(p.List)), data: make([]byte, 0, len(p.data))}
	}
	next := q.spare[last]
	q.spare = q.spare[:last]
	q.held -= next.memory()
	return next
}

// pop gives the first batch for one that has been read; an empty one: none waits.
func (q *queue) pop(done Batch) Batch {
	if cap(done.List) > 0 && len(q.spare) < spareBatchs {
		done = done.emptied()
		q.spare = append(q.spare, done)
		q.held += done.memory()
	}
	if q.empty() {
		q.trim(keptBatchs)
		return Batch{}
	}
	return q.drop()
}

// drop removes the first batch.
func (q *queue) drop() Batch {
	p := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.held -= p.memory()
	q.packets -= len(p.List)
	return p
}

// trim frees the empty batches but for a few.
func (q *queue) trim(keep int) {
	for len(q.spare) > keep {
		last := len(q.spare) - 1
		q.held -= q.spare[last].memory()
		q.spare[last] = Batch{}
		q.spare = q.spare[:last]
	}
}
