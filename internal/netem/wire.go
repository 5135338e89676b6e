package netem

import "github.com/tidepool-net/tidepool/internal/clock"

// wire holds the packets in transit, by their arrival times. Most wires keep the order, so a packet
// that arrives no earlier than those before it goes into a ring. Only packets that overtake go into
// a heap.
type wire struct {
	ring  packetRing
	heap  []*Packet
	order uint64
}

func (w *wire) add(p *Packet) {
	w.order++
	p.order = w.order
	if w.ring.n == 0 || w.ring.newest().at <= p.at {
		w.ring.push(p)
		return
	}
	w.heap = append(w.heap, p)
	h := w.heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (p *Packet) before(q *Packet) bool {
	return p.at < q.at || p.at == q.at && p.order < q.order
}

// first returns when the next packet arrives, or never.
func (w *wire) first() clock.Time {
	t := clock.Never
	if w.ring.n > 0 {
		t = w.ring.first().at
	}
	if len(w.heap) > 0 {
		t = clock.Earliest(t, w.heap[0].at)
	}
	return t
}

// take removes the next packet that has arrived by now; nil: none has arrived.
func (w *wire) take(now clock.Time) *Packet {
	p := w.ring.first()
	if len(w.heap) > 0 && (p == nil || w.heap[0].before(p)) {
		if w.heap[0].at > now {
			return nil
		}
		return w.popHeap()
	}
	if p == nil || p.at > now {
		return nil
	}
	return w.ring.pop()
}

func (w *wire) popHeap() *Packet {
	h := w.heap
	p, n := h[0], len(h)-1
	h[0], h[n] = h[n], nil
	h = h[:n]
	w.heap = h
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < n && h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return p
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
