package stack

import (
	"math/bits"
)

// memory is what the node's own packets live in. It is taken for a packet that is queued,
// given back when that has left in a batch, and taken again when the batch is done with:
// then the owner calls the stack for something else than Output.
type memory struct {
	free  [memoryClasses][][]byte // pieces of 64 bytes, of 128 and so on
	bytes int                     // of all that are free
	left  [][]byte                // in a batch
}

const (
	leastMemory   = 6 // bits of the smallest piece
	memoryClasses = 6 // the largest has 2048 bytes; what is longer has memory of its own
	// maxFreeMemory bounds what is kept for later, and maxLeft the pieces of a batch that are:
	// the garbage collector has the rest.
	maxFreeMemory = maxQueuedBytes / 4
	maxLeft       = 1024
)

// take returns an empty slice with a capacity of n bytes or more.
func (m *memory) take(n int) []byte {
	class := max(bits.Len(uint(n-1)), leastMemory) - leastMemory
	if class >= memoryClasses {
		return make([]byte, 0, n)
	}
	list := m.free[class]
	if len(list) == 0 {
		return make([]byte, 0, 1<<(class+leastMemory))
	}
	last := len(list) - 1
	b := list[last]
	m.free[class] = list[:last]
	m.bytes -= cap(b)
	return b
}

// give takes back what is in a batch and nowhere else.
func (m *memory) give(b []byte) {
	if len(m.left) < maxLeft {
		m.left = append(m.left, b[:0])
	}
}

// reuse has what was given taken again.
func (m *memory) reuse() {
	if len(m.left) == 0 {
		return
	}
	for i, b := range m.left {
		m.left[i] = nil
		class := bits.Len(uint(cap(b))) - 1 - leastMemory
		if class < 0 || class >= memoryClasses || cap(b) != 1<<(class+leastMemory) ||
			m.bytes+cap(b) > maxFreeMemory {
			continue
		}
		m.free[class] = append(m.free[class], b)
		m.bytes += cap(b)
	}
	m.left = m.left[:0]
}
