package buffer

import "sync"

// chunks is a pool of chunks that rings have dropped. Without it, each short connection would leave
// 128 KiB to the garbage collector.
var chunks = sync.Pool{New: func() any { return new(chunk) }}

func newChunk(base uint64) *chunk {
	c, _ := chunks.Get().(*chunk)
	c.base = base
	return c
}

// SetLimit raises the limit to n bytes. It ignores a smaller n: TCP must not shrink a window that
// it has advertised (RFC 9293 §3.8.6).
func (r *Ring) SetLimit(n int) {
	if int64(n) > r.limit.Load() {
		r.limit.Store(int64(n))
	}
}

// Resize sets the limit to n bytes, which may be below the current one. It is for rings whose space
// was not advertised to a peer. The next Write applies it.
func (r *Ring) Resize(n int) { r.limit.Store(int64(n)) }

// TrimProducer frees the memory of an empty ring. Producer only, and only if it has written nothing
// after the tail.
func (r *Ring) TrimProducer() {
	if r.head.Load() == r.tail.Load() {
		r.drop()
	}
}

// TrimConsumer frees the memory of an empty ring. Consumer only; it does nothing while the producer
// is in Write.
func (r *Ring) TrimConsumer() {
	if !r.inside.CompareAndSwap(0, 2) {
		return
	}
	if r.head.Load() == r.tail.Load() {
		r.drop()
	}
	r.inside.Store(0)
}

func (r *Ring) drop() {
	for _, c := range [...]*chunk{r.oldest, r.spare} {
		for c != nil {
			dropped := c
			c, dropped.next = c.next, nil
			chunks.Put(dropped)
		}
	}
	r.oldest, r.newest, r.spare, r.writing, r.reading, r.found = nil, nil, nil, nil, nil, nil
}

// Repeat publishes as many of the next n bytes as fit, in a stream that repeats data from its
// start, and returns their number. It copies nothing: the ring reads data for its whole life, so
// every call must pass the same data, and the caller must not change it or call Write. Producer
// only.
func (r *Ring) Repeat(data []byte, n int) int {
	tail := r.tail.Load()
	if r.repeat == nil {
		if tail > 0 {
			panic("BUG: buffer: Repeat after Write")
		}
		lent := data // a pointer keeps Ring at 96 bytes: an idle connection has two
		r.repeat = &lent
	}
	n = min(n, r.Free())
	r.tail.Store(tail + uint64(n))
	return n
}
