package observe

import (
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"
)

const (
	// BacklogBytes is the memory limit for all packets that wait for a node's observers. Beyond it
	// the node drops the oldest packets, whichever observer they wait for.
	BacklogBytes = 64 << 20
	// stalledBytes is how much an observer may lose after a read. Beyond it the node only counts
	// new packets until the observer reads again: copying packets that it would drop anyway would
	// slow the node down.
	stalledBytes = BacklogBytes / 16
	// releaseBytes is how far the backlog must shrink before freed memory returns to the system.
	releaseBytes = 8 << 20
)

// Backlog holds the packets that wait for the observers of one node.
type Backlog struct {
	mu        sync.Mutex
	held      int // memory of all queues, in bytes
	peak      int // maximum of held since memory was last returned to the system
	observers []*Observer
}

func (b *Backlog) enter(o *Observer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observers = append(b.observers, o)
}

// leave drops an observer's packets, and returns memory to the system if much of it is free.
func (b *Backlog) leave(o *Observer) {
	b.mu.Lock()
	i := slices.Index(b.observers, o)
	if i >= 0 {
		b.observers = slices.Delete(b.observers, i, i+1)
		b.held -= o.queue.held
		o.queue = queue{}
	}
	free := b.peak-b.held > releaseBytes && b.held < b.peak/2
	if free {
		b.peak = b.held
	}
	b.mu.Unlock()
	if free {
		debug.FreeOSMemory()
	}
}

// room drops the oldest packets until n more bytes fit. It reports false if only packets of patient
// observers are left. The caller holds the lock.
func (b *Backlog) room(bytes int) bool {
	for b.held+bytes > BacklogBytes {
		var oldest *Observer
		for _, o := range b.observers {
			if o.Patient || o.queue.empty() {
				continue
			}
			if oldest == nil || o.queue.first().At < oldest.queue.first().At {
				oldest = o
			}
		}
		if oldest == nil {
			return false
		}
		oldest.dropFirst()
	}
	return true
}

// note adds a number of bytes, which may be negative, to the memory of all queues. The caller holds
// the lock.
func (b *Backlog) note(bytes int) {
	b.held += bytes
	b.peak = max(b.peak, b.held)
}

// packetBytes is the size of a Packet in a batch's list.
const packetBytes = int(unsafe.Sizeof(Packet{}))

func (p *Batch) memory() int { return cap(p.data) + cap(p.List)*packetBytes }
