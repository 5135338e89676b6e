package observe

import (
	"runtime/debug"
	"slices"
	"sync"
	"unsafe"
)

const (
	// BacklogBytes is how much memory the packets that wait for all observers of a node may take.
	// Beyond it the oldest packets are dropped, whichever observer they wait for.
	BacklogBytes = 64 << 20
	// stalledBytes is how much an observer may lose since it last read. Beyond it new packets are
	// only counted, until it reads again: copying them for a reader that has stopped would slow
	// the node down.
	stalledBytes = BacklogBytes / 16
	// releaseBytes is how far the backlog must shrink before freed memory returns to the system.
	releaseBytes = 8 << 20
)

// Backlog is the packets that wait for the observers of one node.
type Backlog struct {
	mu        sync.Mutex
	held      int // bytes of memory of all queues
	peak      int // of held, since memory was returned
	observers []*Observer
}

// enter adds an observer, whose packets count from now on.
func (b *Backlog) enter(o *Observer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observers = append(b.observers, o)
}

// leave drops what waits for an observer. When much memory is free again, the system gets it back.
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

// room drops the oldest packets until so many bytes fit; false: what is left belongs to observers
// that lose nothing. The backlog is locked.
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

// note counts the memory that a queue of an observer has come to hold, or no longer holds. The
// backlog is locked.
func (b *Backlog) note(bytes int) {
	b.held += bytes
	b.peak = max(b.peak, b.held)
}

// packetBytes is what a Packet takes in a batch's list.
const packetBytes = int(unsafe.Sizeof(Packet{}))

// memory is how many bytes a batch takes.
func (p *Batch) memory() int { return cap(p.data) + cap(p.List)*packetBytes }
