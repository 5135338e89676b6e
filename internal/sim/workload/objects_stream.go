package workload

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
)

// On a connection, each object follows its length, 16 characters in Python's format '{:16d}'. If
// chunks are interleaved, each follows a frame, which consists of the object's number and the
// chunk's length, 2 bytes each. A client with a connection for each object requests it by its
// number, 2 bytes.
const (
	prefixBytes  = 16
	frameBytes   = 4
	RequestBytes = 2
	maxChunk     = 1<<16 - 1
)

// Stream returns the data of a connection for all objects, in parts. It is empty for Parallel,
// where a connection has the Stream of the object that the client requests.
func (c ObjectsConfig) Stream(items []Item) (parts [][]byte) {
	c = c.withDefaults()
	switch c.Arm {
	case Sequential:
		for _, i := range order(&c, items) {
			parts = append(parts, items[i].Stream()...)
		}
	case Interleaved:
		return interleaved(items, c.Chunk)
	default:
	}
	return parts
}

// Stream returns the data of the object on a connection, in parts.
func (i *Item) Stream() [][]byte {
	return [][]byte{fmt.Appendf(nil, "%*d", prefixBytes, len(i.Data)), i.Data}
}

// interleaved returns frames and chunks of the objects, in turns. An object's length is in its
// first chunk.
func interleaved(items []Item, chunk int) (parts [][]byte) {
	left := make([][]byte, len(items))
	for i := range items {
		left[i] = bytes.Join(items[i].Stream(), nil)
	}
	for more := true; more; {
		more = false
		for i := range left {
			n := min(chunk, len(left[i]))
			if n == 0 {
				continue
			}
			frame := binary.BigEndian.AppendUint16(make([]byte, 0, frameBytes), uint16(i))
			frame = binary.BigEndian.AppendUint16(frame, uint16(n))
			parts = append(parts, frame, left[i][:n])
			left[i] = left[i][n:]
			more = true
		}
	}
	return parts
}

// ObjectReader splits the data of a connection into objects.
type ObjectReader struct {
	items  []Item
	order  []int // numbers of the objects that follow, in order; if framed, in any order
	framed bool
	got    func(i, at int, b []byte) bool

	heads   [][]byte // arrived parts of the lengths, by object
	at      []int    // number of data bytes so far, by object
	frame   []byte   // frame that is being read
	current int      // object whose chunk is being read
	chunk   int      // number of bytes left in that chunk
	done    int      // number of complete objects
}

// NewObjectReader returns the reader of a connection with the objects of these numbers, in order,
// or, if framed, in chunks. The reader calls got with the data of object i from an offset on, in
// order, and first with no data when the object begins. If got returns false, the data is invalid.
func NewObjectReader(
	items []Item, order []int, framed bool, got func(i, at int, b []byte) bool,
) *ObjectReader {
	return &ObjectReader{
		items: items, order: order, framed: framed, got: got,
		heads: make([][]byte, len(items)), at: make([]int, len(items)),
	}
}

// Left returns the number of objects that are not complete.
func (r *ObjectReader) Left() int { return len(r.order) - r.done }

// Take takes the next bytes of the connection, and reports whether they are valid.
func (r *ObjectReader) Take(b []byte) bool {
	for len(b) > 0 {
		switch {
		case !r.framed:
			if r.Left() == 0 {
				return false
			}
			n, ok := r.put(r.order[r.done], b)
			if !ok {
				return false
			}
			b = b[n:]
		case r.chunk == 0:
			n := min(frameBytes-len(r.frame), len(b))
			r.frame = append(r.frame, b[:n]...)
			b = b[n:]
			if len(r.frame) < frameBytes {
				return true
			}
			r.current = int(binary.BigEndian.Uint16(r.frame))
			r.chunk = int(binary.BigEndian.Uint16(r.frame[2:]))
			r.frame = r.frame[:0]
			if r.current >= len(r.items) || r.chunk == 0 {
				return false
			}
		default:
			n, ok := r.put(r.current, b[:min(r.chunk, len(b))])
			if !ok {
				return false
			}
			r.chunk -= n
			b = b[n:]
		}
	}
	return true
}

// put passes bytes to an object, and returns how many of them it used.
func (r *ObjectReader) put(i int, b []byte) (n int, ok bool) {
	size := len(r.items[i].Data)
	if head := r.heads[i]; len(head) < prefixBytes {
		if len(head) == 0 && !r.got(i, 0, nil) {
			return 0, false
		}
		n = min(prefixBytes-len(head), len(b))
		head = append(head, b[:n]...)
		if r.heads[i] = head; len(head) < prefixBytes {
			return n, true
		}
		announced, err := strconv.ParseUint(string(bytes.TrimLeft(head, " ")), 10, 32)
		return n, err == nil && int(announced) == size
	}
	at := r.at[i]
	n = min(size-at, len(b))
	if n == 0 {
		return 0, false // there is more data than the object has
	}
	if r.at[i] += n; r.at[i] == size {
		r.done++
	}
	return n, r.got(i, at, b[:n])
}
