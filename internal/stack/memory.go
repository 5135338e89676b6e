package stack

import "math/bits"

// memory is a pool for the node's own packets. take returns memory for a packet that is queued.
// give returns the memory to the pool when the packet is in a batch. reuse makes it available after
// the batch was sent: Input, Advance and Datagrams.Send call it.
type memory struct {
	free  [memoryClasses][][]byte // free memory in pieces of 64 bytes, of 128 bytes and so on
	bytes int                     // number of bytes in free
	left  [][]byte                // memory that a batch still uses
}

const (
	leastMemory   = 6 // log2 of the smallest size
	memoryClasses = 6 // sizes up to 2048 bytes; memory for longer packets is allocated
	// maxFreeMemory limits the bytes that are kept for reuse, and maxLeft limits the number of
	// pieces of a batch that are kept. The garbage collector frees the others.
	maxFreeMemory = maxQueuedBytes / 4
	maxLeft       = 1024
)

// take returns an empty slice with a capacity of at least n bytes.
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

// give accepts memory that only a batch still uses.
func (m *memory) give(b []byte) {
	if len(m.left) < maxLeft {
		m.left = append(m.left, b[:0])
	}
}

// reuse makes the memory from give available to take.
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
