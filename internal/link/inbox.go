package link

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Limits of an inbox: one that is full leaves datagrams in the kernel's queue,
// whose drops the kernel counts.
const (
	inboxBytes     = 1 << 20
	inboxDatagrams = 4096
)

// inbox is what a reader goroutine has read and the device's owner has not
// taken. There are two halves: one is filled while the other is lent.
type inbox struct {
	mu     sync.Mutex
	room   sync.Cond // signalled when the owner took a half, and at the end
	fresh  half
	spare  half // the owner's, once taken
	ready  func()
	closed bool
	done   chan struct{}

	reads, errors, absent uint64
}

type half struct {
	data []byte
	list []datagram
	offs []int // where list[i].data begins; data may move while it grows
}

// source is what an inbox is filled from.
type source interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
}

func newInbox() *inbox {
	b := &inbox{done: make(chan struct{})}
	b.room.L = &b.mu
	return b
}

// fill reads until the socket is closed. It is the reader goroutine.
func (b *inbox) fill(from source) {
	defer close(b.done)
	buf := make([]byte, maxDatagram)
	failures := 0
	for {
		n, addr, err := from.ReadFromUDPAddrPort(buf)
		if err != nil {
			failures++
			if !b.failed(err, failures) {
				return
			}
			continue
		}
		failures = 0
		if !b.add(buf[:n], addressOf(addr)) {
			return
		}
	}
}

// failed notes a failed read and reports whether to go on. One that keeps
// failing is not asked all the time.
func (b *inbox) failed(err error, times int) bool {
	const often, rest = 100, 10 * time.Millisecond
	if errors.Is(err, net.ErrClosed) {
		return false
	}
	b.mu.Lock()
	if errors.Is(err, errRefused) {
		b.absent++
	} else {
		b.errors++
	}
	closed := b.closed
	b.mu.Unlock()
	if times > often {
		time.Sleep(rest)
	}
	return !closed
}

// add copies a datagram in, once there is room for it. One that continues the
// last, same sender and size, becomes part of it, as the kernel's GRO does.
func (b *inbox) add(data []byte, from address) bool {
	b.mu.Lock()
	h := &b.fresh
	for !b.closed && len(h.list) > 0 &&
		(len(h.list) >= inboxDatagrams || len(h.data)+len(data) > inboxBytes) {
		b.room.Wait()
	}
	if b.closed {
		b.mu.Unlock()
		return false
	}
	b.reads++
	var ready func()
	if len(h.list) == 0 {
		ready = b.ready
	}
	if !h.join(data, from) {
		h.offs = append(h.offs, len(h.data))
		h.data = append(h.data, data...)
		h.list = append(h.list, datagram{size: len(data), from: from})
	}
	b.mu.Unlock()
	if ready != nil {
		ready()
	}
	return true
}

// join makes data part of the last datagram if it may.
func (h *half) join(data []byte, from address) bool {
	i := len(h.list) - 1
	if i < 0 || len(data) == 0 {
		return false
	}
	last := &h.list[i]
	length := len(h.data) - h.offs[i]
	if last.from != from || len(data) > last.size || length%last.size != 0 ||
		length+len(data) > maxDatagram {
		return false
	}
	h.data = append(h.data, data...)
	return true
}

// take lends what has arrived, until the next take.
func (b *inbox) take() ([]datagram, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fresh.list) == 0 {
		if b.closed {
			return nil, net.ErrClosed
		}
		return nil, ErrWouldBlock
	}
	b.fresh, b.spare = b.spare, b.fresh
	b.fresh.data, b.fresh.list, b.fresh.offs = b.fresh.data[:0], b.fresh.list[:0], b.fresh.offs[:0]
	b.room.Signal()
	h := &b.spare
	for i := range h.list {
		end := len(h.data)
		if i+1 < len(h.list) {
			end = h.offs[i+1]
		}
		h.list[i].data = h.data[h.offs[i]:end:end]
	}
	return h.list, nil
}

// tell has ready called whenever something arrives after there was nothing.
func (b *inbox) tell(ready func()) {
	b.mu.Lock()
	b.ready = ready
	b.mu.Unlock()
	b.remind()
}

// remind calls it now if something has arrived.
func (b *inbox) remind() {
	b.mu.Lock()
	var ready func()
	if len(b.fresh.list) > 0 {
		ready = b.ready
	}
	b.mu.Unlock()
	if ready != nil {
		ready()
	}
}

func (b *inbox) counters(c *SocketCounters) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Reads, c.ReadErrors = b.reads, b.errors
	c.Absent += b.absent
}

// close ends the reader, whose socket is closed already, and waits for it.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.room.Broadcast()
	b.mu.Unlock()
	<-b.done
}
