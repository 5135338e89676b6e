package observe

import "slices"

const (
	// maxWaiting is the maximum number of packets that wait for one observer.
	maxWaiting = 1 << 15
	// Instead of queuing a batch of up to shortBatch bytes, push copies it to the end of the last
	// one, up to longBatch bytes.
	shortBatch = 16 << 10
	longBatch  = 256 << 10
	// keptBatches is the number of empty batches that an idle queue keeps, and spareBatches is the
	// maximum that a busy queue keeps.
	keptBatches  = 2
	spareBatches = 64
)

// queue holds the batches that wait for an observer, in order. It moves long batches without
// copying their packets again.
type queue struct {
	waiting []Batch
	packets int     // number of packets in waiting
	spare   []Batch // empty batches that can be reused
	held    int     // memory of both lists, in bytes
}

func (q *queue) empty() bool { return len(q.waiting) == 0 }

func (q *queue) fits(p *Batch) bool { return q.packets+len(p.List) <= maxWaiting }

func (q *queue) first() *Packet { return &q.waiting[0].List[0] }

// push queues a batch and returns an empty one.
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

// pop returns the first batch of the queue. It reuses the memory of a batch that was read. The
// result is empty if the queue is empty.
func (q *queue) pop(done Batch) Batch {
	if cap(done.List) > 0 && len(q.spare) < spareBatches {
		done = done.emptied()
		q.spare = append(q.spare, done)
		q.held += done.memory()
	}
	if q.empty() {
		q.trim(keptBatches)
		return Batch{}
	}
	return q.drop()
}

func (q *queue) drop() Batch {
	p := q.waiting[0]
	q.waiting = slices.Delete(q.waiting, 0, 1)
	q.held -= p.memory()
	q.packets -= len(p.List)
	return p
}

// trim frees all but a few of the empty batches.
func (q *queue) trim(keep int) {
	for len(q.spare) > keep {
		last := len(q.spare) - 1
		q.held -= q.spare[last].memory()
		q.spare[last] = Batch{}
		q.spare = q.spare[:last]
	}
}
