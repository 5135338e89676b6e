package buffer

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
)

// chunkSize is the unit in which a Ring grows.
const chunkSize = 64 << 10

// chunk is one piece of a ring's storage. The chain runs from the oldest bytes
// to the newest; base is the stream offset of data[0].
type chunk struct {
	next *chunk
	base uint64
	data [chunkSize]byte
}

// Ring is a byte stream between one producer and one consumer, which may be two
// goroutines: they share nothing but two atomic indexes. Positions are absolute
// offsets in the stream, starting at 0, so they never wrap in practice.
//
// Its memory is a chain of 64 KiB chunks. The consumer only moves forward; the
// producer takes chunks back once the consumer is past them. A ring that has
// carried nothing, or was trimmed while empty, holds no chunk. Nor does one whose producer
// repeats a text (Repeat).
type Ring struct {
	// The consumer's: where it reads, and the last chunk that Slices found.
	head    atomic.Uint64 // consumed up to here
	reading *chunk
	found   *chunk
	foundAt uint64

	limit atomic.Int64
	text  *[]byte // what the stream is, over and over; nil: what was written

	// The producer's: the chain, what it has taken back of it, and where it writes. What
	// changes with each Write is last, a cache line or more behind head.
	oldest, newest *chunk
	spare          *chunk        // the last that was consumed, and those before it
	writing        *chunk        // the chunk that holds tail, or ends at it
	inside         atomic.Uint32 // 1: the producer is in Write, 2: the consumer trims
	tail           atomic.Uint64 // published up to here
}

// NewRing returns an empty ring that holds at most limit bytes.
func NewRing(limit int) *Ring {
	r := &Ring{}
	r.limit.Store(int64(limit))
	return r
}

// Limit returns how many bytes the ring holds at most.
func (r *Ring) Limit() int { return int(r.limit.Load()) }

// SetLimit raises the limit to n bytes. A smaller n is ignored: a window that
// was offered is not taken back (RFC 9293 §3.8.6).
func (r *Ring) SetLimit(n int) {
	if int64(n) > r.limit.Load() {
		r.limit.Store(int64(n))
	}
}

// Resize sets the limit to n bytes, also to less, for a ring whose room was
// promised to nobody: the next Write finds out.
func (r *Ring) Resize(n int) { r.limit.Store(int64(n)) }

// Len returns how many published bytes wait for the consumer.
func (r *Ring) Len() int { return int(r.tail.Load() - r.head.Load()) }

// Free returns how many bytes the producer may add now.
func (r *Ring) Free() int { return max(0, r.Limit()-r.Len()) }

// Head returns the offset of the oldest byte that is not consumed.
func (r *Ring) Head() uint64 { return r.head.Load() }

// Tail returns the offset behind the newest published byte.
func (r *Ring) Tail() uint64 { return r.tail.Load() }

// Write copies as much of p as fits, publishes it and returns how much that
// was. Producer only.
func (r *Ring) Write(p []byte) int {
	for !r.inside.CompareAndSwap(0, 1) {
		runtime.Gosched() // the consumer trims: a few stores
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

// Repeat publishes as much of the next n bytes of a stream that is text over and over, from its
// beginning on, as fits, and returns how much that was. Nothing is copied: text is lent for the
// ring's life, and the same each time. A ring that repeats is not written to. Producer only.
func (r *Ring) Repeat(text []byte, n int) int {
	tail := r.tail.Load()
	if r.text == nil {
		if tail > 0 {
			panic("BUG: buffer: Repeat behind what was written")
		}
		lent := text // by a pointer: idle connections have two rings, of 96 bytes each
		r.text = &lent
	}
	n = min(n, r.Free())
	r.tail.Store(tail + uint64(n))
	return n
}

// WriteAt copies p to the stream offset off without publishing it, for bytes
// that arrived out of order. It requires Tail <= off and off+len(p) <=
// Head+Limit. Producer only.
func (r *Ring) WriteAt(off uint64, p []byte) {
	tail := r.tail.Load()
	if off < tail || off+uint64(len(p)) > r.head.Load()+uint64(r.Limit()) {
		panic(fmt.Sprintf("BUG: buffer: WriteAt %d+%d outside [%d, %d+%d)",
			off, len(p), tail, r.head.Load(), r.Limit()))
	}
	r.writeAt(tail, off, p)
}

// Commit publishes everything before tail, which must have been written.
// Producer only.
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
	if r.text != nil {
		panic("BUG: buffer: a ring that repeats is written to")
	}
	if r.writing == nil {
		c := &chunk{base: tail}
		r.oldest, r.newest, r.writing = c, c, c
		r.reading = c // the consumer looks here only after the next publish
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

// extend appends a chunk to the chain: of those that the consumer has stepped out of the last,
// which the processor may still have in its cache, or else a new one.
func (r *Ring) extend() {
	for head := r.head.Load(); r.oldest.base+chunkSize < head; {
		c := r.oldest
		r.oldest, c.next, r.spare = c.next, r.spare, c
	}
	c := r.spare
	if c != nil {
		r.spare, c.next = c.next, nil
	} else {
		c = &chunk{}
	}
	c.base = r.newest.base + chunkSize
	r.newest.next = c
	r.newest = c
}

// TrimProducer gives the memory of an empty ring back. Producer only, and only
// when nothing was written beyond the tail.
func (r *Ring) TrimProducer() {
	if r.head.Load() == r.tail.Load() {
		r.drop()
	}
}

// TrimConsumer gives the memory of an empty ring back. Consumer only; it does
// nothing while the producer is writing.
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
	r.oldest, r.newest, r.spare, r.writing, r.reading, r.found = nil, nil, nil, nil, nil, nil
}

// Read copies up to len(p) bytes out, consumes them and returns their number.
// Consumer only.
func (r *Ring) Read(p []byte) int {
	head := r.head.Load()
	n := min(len(p), int(r.tail.Load()-head))
	if n == 0 {
		return 0
	}
	if r.text != nil {
		for text, done := *r.text, 0; done < n; {
			done += copy(p[done:n], text[(head+uint64(done))%uint64(len(text)):])
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
	r.head.Store(head) // last: the producer may take over from here
	return n
}

// Slices appends to dst the pieces of storage that hold the n bytes from
// stream offset off, all of which must be published and not released, and
// returns the extended slice. They are lent until Release. Consumer only.
func (r *Ring) Slices(dst [][]byte, off uint64, n int) [][]byte {
	if off < r.head.Load() || off+uint64(n) > r.tail.Load() {
		panic(fmt.Sprintf("BUG: buffer: Slices %d+%d outside [%d, %d)",
			off, n, r.head.Load(), r.tail.Load()))
	}
	if n == 0 {
		return dst
	}
	if r.text != nil {
		text := *r.text
		at := int(off % uint64(len(text)))
		for ; n > len(text)-at; at = 0 {
			dst, n = append(dst, slices.Clip(text[at:])), n-(len(text)-at)
		}
		return append(dst, text[at:at+n:at+n])
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

// Release consumes everything before head, which must not be beyond the tail.
// Consumer only.
func (r *Ring) Release(head uint64) {
	if head < r.head.Load() || head > r.tail.Load() {
		panic(fmt.Sprintf("BUG: buffer: Release %d outside [%d, %d]",
			head, r.head.Load(), r.tail.Load()))
	}
	if head == r.head.Load() {
		return // perhaps empty, and then the chain is the producer's
	}
	for r.text == nil && head > r.reading.base+chunkSize {
		r.reading = r.reading.next
	}
	r.head.Store(head)
}
