package link

import "github.com/tidepool-net/tidepool/internal/buffer"

// outQueue holds copies of trains that the kernel has not accepted yet. It allocates memory when it
// is first used.
type outQueue struct {
	maxPackets, maxBytes int
	packets              int
	mem                  []byte // bytes of the trains in list, in order
	list                 []queued
	head                 int // list[:head] has been removed
}

// queued is one train in the queue.
type queued struct {
	to    *neighbor
	off   int // offset of the train's bytes in mem
	piece [1][]byte
	train buffer.Train // outQueue.train sets its Pieces
}

// room returns how many more packets of up to mtu bytes fit.
func (q *outQueue) room(mtu int) int {
	return max(0, min(q.maxPackets-q.packets, (q.maxBytes-q.bytes())/mtu))
}

func (q *outQueue) bytes() int {
	if q.head == len(q.list) {
		return 0
	}
	return len(q.mem) - q.list[q.head].off
}

// fits reports whether a train fits. An empty queue accepts any train, so every train is accepted
// at some time.
func (q *outQueue) fits(t *buffer.Train) bool {
	return q.packets == 0 ||
		q.packets+t.Count <= q.maxPackets && q.bytes()+t.Bytes <= q.maxBytes
}

// push copies a train without its first skip packets.
func (q *outQueue) push(to *neighbor, t *buffer.Train, skip int) {
	q.reclaim()
	drop := skip * t.Size
	off := len(q.mem)
	for _, p := range t.Pieces {
		n := min(drop, len(p))
		drop -= n
		q.mem = append(q.mem, p[n:]...)
	}
	q.list = append(q.list, queued{to: to, off: off, train: buffer.Train{
		Size: t.Size, Count: t.Count - skip, Bytes: len(q.mem) - off,
	}})
	q.packets += t.Count - skip
	to.on.counters.Queued += uint64(t.Count - skip)
}

// train returns list[i], valid until the next push or pop.
func (q *outQueue) train(i int) (*neighbor, *buffer.Train) {
	e := &q.list[i]
	e.piece[0] = q.mem[e.off : e.off+e.train.Bytes]
	e.train.Pieces = e.piece[:]
	return e.to, &e.train
}

// pop removes the first packets. It may end within a train.
func (q *outQueue) pop(packets int) {
	q.packets -= packets
	for packets > 0 {
		e := &q.list[q.head]
		if packets < e.train.Count {
			e.train.Count -= packets
			e.off += packets * e.train.Size
			e.train.Bytes -= packets * e.train.Size
			return
		}
		packets -= e.train.Count
		q.head++
	}
}

// reclaim moves the remaining data to the front when at least half of the memory is unused.
func (q *outQueue) reclaim() {
	if q.head == len(q.list) {
		q.mem, q.list, q.head = q.mem[:0], q.list[:0], 0
		return
	}
	first := q.list[q.head].off
	if first < len(q.mem)/2 {
		return
	}
	q.mem = q.mem[:copy(q.mem, q.mem[first:])]
	q.list = q.list[:copy(q.list, q.list[q.head:])]
	q.head = 0
	for i := range q.list {
		q.list[i].off -= first
	}
}
