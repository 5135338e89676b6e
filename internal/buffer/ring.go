package buffer

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
)

// chunkSize is the unit in which a Ring grows.
const chunkSize = 64 << 10

// chunk is one piece of a ring's storage. Chunks form a list from the oldest bytes to the newest;
// base is the stream offset of data[0].
type chunk struct {
	next *chunk
	base uint64
	data [chunkSize]byte
}

// Ring is a byte stream between one producer and one consumer. They may run in two goroutines,
// which synchronize only by atomic fields. Positions are absolute offsets in the stream, from 0,
// and never wrap in practice.
//
// The storage is a list of 64 KiB chunks. The consumer only moves forward; the producer reuses a
// chunk after the consumer has left it. A ring holds no chunk before its first Write, after a trim
// while empty, or if its producer uses Repeat.
type Ring struct {
	// The consumer's fields: its position, and the chunk that Slices found last.
	head    atomic.Uint64 // everything before it is consumed
	reading *chunk
	found   *chunk
	foundAt uint64

	limit  atomic.Int64
	repeat *[]byte // the data that Repeat publishes again and again; nil: Write fills the ring

	// The producer's fields: the list of chunks, the consumed chunks that it can reuse, and the
	// write position. The fields that every Write changes come last, at least a cache line away
	// from head.
	oldest, newest *chunk
	spare          *chunk        // stack of consumed chunks, the newest on top
	writing        *chunk        // the chunk that contains tail, or ends at it
	inside         atomic.Uint32 // 1: the producer is in Write; 2: the consumer is trimming
	tail           atomic.Uint64 // everything before it is published
}

// NewRing returns an empty ring that holds up to limit bytes.
func NewRing(limit int) *Ring {
	r := &Ring{}
	r.limit.Store(int64(limit))
	return r
}

// Limit returns the ring's capacity in bytes.
func (r *Ring) Limit() int { return int(r.limit.Load()) }

// Len returns the number of published bytes that the consumer has not consumed.
func (r *Ring) Len() int { return int(r.tail.Load() - r.head.Load()) }

// Free returns how many bytes the producer may add now.
func (r *Ring) Free() int { return max(0, r.Limit()-r.Len()) }

// Head returns the offset of the oldest unconsumed byte.
func (r *Ring) Head() uint64 { return r.head.Load() }

// Tail returns the offset after the newest published byte.
func (r *Ring) Tail() uint64 { return r.tail.Load() }

// Write copies as much of p as fits, publishes it and returns its length. Producer only.
func (r *Ring) Write(p []byte) int {
	for !r.inside.CompareAndSwap(0, 1) {
		runtime.Gosched() // the consumer is trimming, which takes a few stores
	}
	tail := r.tail.Load()
	n := min(len(p), r.Free())
	if n > 0 {
		r.writeAt(tail, tail, p[:n])
		r.publish(tail + uint64(n))
	}
	r.inside.Store(0)
	return n
}

// WriteAt copies p to the stream offset off without publishing it, for bytes that arrived out of
// order. It panics unless Tail <= off and off+len(p) <= Head+Limit. Producer only.
func (r *Ring) WriteAt(off uint64, p []byte) {
	tail := r.tail.Load()
	if off < tail || off+uint64(len(p)) > r.head.Load()+uint64(r.Limit()) {
		panic(fmt.Sprintf("BUG: buffer: WriteAt %d+%d outside [%d, %d+%d)",
			off, len(p), tail, r.head.Load(), r.Limit()))
	}
	r.writeAt(tail, off, p)
}

// Commit publishes everything before tail; the producer must have written it. Producer only.
func (r *Ring) Commit(tail uint64) {
	if tail < r.tail.Load() {
		panic("BUG: buffer: Commit before the tail")
	}
	r.publish(tail)
}

func (r *Ring) publish(tail uint64) {
	for r.writing != nil && r.writing.next != nil && tail >= r.writing.base+chunkSize {
		r.writing = r.writing.next
	}
	r.tail.Store(tail)
}

func (r *Ring) writeAt(tail, off uint64, p []byte) {
	if len(p) == 0 {
		return
	}
	if r.repeat != nil {
		panic("BUG: buffer: Write after Repeat")
	}
	if r.writing == nil {
		c := newChunk(tail)
		r.oldest, r.newest, r.writing = c, c, c
		r.reading = c // the consumer reads this field only after the next publish
	}
	c := r.writing
	for {
		for off >= c.base+chunkSize {
			if c.next == nil {
				r.extend()
			}
			c = c.next
		}
		n := copy(c.data[off-c.base:], p)
		if p = p[n:]; len(p) == 0 {
			return
		}
		off += uint64(n)
	}
}

// extend appends a chunk to the list. If possible it reuses the most recently consumed chunk.
func (r *Ring) extend() {
	for head := r.head.Load(); r.oldest.base+chunkSize < head; {
		c := r.oldest
		r.oldest, c.next, r.spare = c.next, r.spare, c
	}
	c := r.spare
	if c != nil {
		r.spare, c.next = c.next, nil
	} else {
		c = newChunk(0)
	}
	c.base = r.newest.base + chunkSize
	r.newest.next = c
	r.newest = c
}

// Read copies up to len(p) bytes to p, consumes them and returns their number. Consumer only.
func (r *Ring) Read(p []byte) int {
	head := r.head.Load()
	n := min(len(p), int(r.tail.Load()-head))
	if n == 0 {
		return 0
	}
	if r.repeat != nil {
		for data, done := *r.repeat, 0; done < n; {
			done += copy(p[done:n], data[(head+uint64(done))%uint64(len(data)):])
		}
		r.head.Store(head + uint64(n))
		return n
	}
	c := r.reading
	for done := 0; done < n; {
		for head >= c.base+chunkSize {
			c = c.next
		}
		k := copy(p[done:n], c.data[head-c.base:])
		done += k
		head += uint64(k)
	}
	r.reading = c
	r.head.Store(head) // must be last: the producer may reuse the chunks from here on
	return n
}

// Slices appends to dst the pieces of storage that hold the n bytes from stream offset off, and
// returns the extended slice. The bytes must be published and not released; the pieces are valid
// until Release. Consumer only.
func (r *Ring) Slices(dst [][]byte, off uint64, n int) [][]byte {
	if off < r.head.Load() || off+uint64(n) > r.tail.Load() {
		panic(fmt.Sprintf("BUG: buffer: Slices %d+%d outside [%d, %d)",
			off, n, r.head.Load(), r.tail.Load()))
	}
	if n == 0 {
		return dst
	}
	if r.repeat != nil {
		data := *r.repeat
		at := int(off % uint64(len(data)))
		for ; n > len(data)-at; at = 0 {
			dst, n = append(dst, slices.Clip(data[at:])), n-(len(data)-at)
		}
		return append(dst, data[at:at+n:at+n])
	}
	c := r.reading
	if r.found != nil && r.foundAt >= c.base && r.foundAt <= off {
		c = r.found
	}
	for off >= c.base+chunkSize {
		c = c.next
	}
	r.found, r.foundAt = c, c.base
	for {
		at := off - c.base
		k := min(n, int(chunkSize-at))
		dst = append(dst, c.data[at:at+uint64(k):at+uint64(k)])
		if n -= k; n == 0 {
			return dst
		}
		off += uint64(k)
		c = c.next
	}
}

// Release consumes everything before head, which must not exceed the tail. Consumer only.
func (r *Ring) Release(head uint64) {
	if head < r.head.Load() || head > r.tail.Load() {
		panic(fmt.Sprintf("BUG: buffer: Release %d outside [%d, %d]",
			head, r.head.Load(), r.tail.Load()))
	}
	if head == r.head.Load() {
		return // if the ring is empty, the producer may be changing the list of chunks
	}
	for r.repeat == nil && head > r.reading.base+chunkSize {
		r.reading = r.reading.next
	}
	r.head.Store(head)
}
