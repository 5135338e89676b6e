package link

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// These are limits of an inbox. If it is full, datagrams stay in the kernel's queue, and the kernel
// counts those that it drops.
const (
	inboxBytes     = 1 << 20
	inboxDatagrams = 4096
	inboxPackets   = 4096 // packets of the Exchange, about as many as a socket's buffer holds
)

// inbox holds datagrams that the device's owner has not received yet. They come from the reader
// goroutine or from senders of an Exchange. They fill fresh while the owner uses spare.
type inbox struct {
	mu      sync.Mutex
	notFull sync.Cond // signaled when the owner takes datagrams, and when the inbox closes
	fresh   datagrams
	spare   datagrams // datagrams that the owner uses
	ready   func()
	closed  bool
	done    chan struct{}

	packets int      // packets that senders have put in fresh
	waiting []*inbox // inboxes of senders that wait for room

	reads, errors, absent uint64
}

// datagrams is a list of datagrams in contiguous memory.
type datagrams struct {
	data []byte
	list []datagram
	offs []int // offset of each list[i].data; data moves when it grows
}

// source is the socket that fills an inbox.
type source interface {
	ReadFromUDPAddrPort(b []byte) (n int, from netip.AddrPort, err error)
}

func newInbox() *inbox {
	b := &inbox{done: make(chan struct{})}
	b.notFull.L = &b.mu
	return b
}

// fill is the reader goroutine. It reads until the socket is closed.
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

// failed counts a failed read and reports whether to continue. After many failures it pauses.
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

// add waits for room and copies a datagram. It appends to the previous datagram of the same sender
// and size, as the kernel's GRO does.
func (b *inbox) add(data []byte, from address) bool {
	b.mu.Lock()
	h := &b.fresh
	for !b.closed && len(h.list) > 0 &&
		(len(h.list) >= inboxDatagrams || len(h.data)+len(data) > inboxBytes) {
		b.notFull.Wait()
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

// join appends data to the last datagram if possible.
func (h *datagrams) join(data []byte, from address) bool {
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

// put copies trains as datagrams of a sender that has asked for room. It returns false if the inbox
// is closed.
func (b *inbox) put(trains []buffer.Train, from address) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	h := &b.fresh
	var ready func()
	if len(h.list) == 0 {
		ready = b.ready
	}
	for i := range trains {
		t := &trains[i]
		h.offs = append(h.offs, len(h.data))
		for _, piece := range t.Pieces {
			h.data = append(h.data, piece...)
		}
		h.list = append(h.list, datagram{size: t.Size, from: from, checked: t.Checked})
		b.packets += t.Count
	}
	b.mu.Unlock()
	if ready != nil {
		ready()
	}
	return true
}

// room returns how many packets a sender may put. If none, signalSenders signals the sender later.
func (b *inbox) room(sender *inbox) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := max(0, inboxPackets-b.packets)
	if left == 0 && !slices.Contains(b.waiting, sender) {
		b.waiting = append(b.waiting, sender)
	}
	return left
}

// signalSenders signals the senders that wait for room.
func (b *inbox) signalSenders() {
	b.mu.Lock()
	waiting := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for _, sender := range waiting {
		sender.mu.Lock()
		ready := sender.ready
		sender.mu.Unlock()
		if ready != nil {
			ready()
		}
	}
}

// take returns the datagrams, which are valid until the next take.
func (b *inbox) take() ([]datagram, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fresh.list) == 0 {
		if b.closed {
			return nil, net.ErrClosed
		}
		return nil, ErrWouldBlock
	}
	b.packets = 0
	b.fresh, b.spare = b.spare, b.fresh
	b.fresh.data, b.fresh.list, b.fresh.offs = b.fresh.data[:0], b.fresh.list[:0], b.fresh.offs[:0]
	b.notFull.Signal()
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

// feed sets a function. The inbox calls it when data arrives in an empty inbox.
func (b *inbox) feed(ready func()) {
	b.mu.Lock()
	b.ready = ready
	b.mu.Unlock()
	b.resignal()
}

// resignal calls the function of feed now if the inbox is not empty.
func (b *inbox) resignal() {
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

// close stops the reader, whose socket is closed, and waits for it.
func (b *inbox) close() {
	b.shut()
	<-b.done
}

// shut makes the inbox refuse datagrams.
func (b *inbox) shut() {
	b.mu.Lock()
	b.closed = true
	b.notFull.Broadcast()
	b.mu.Unlock()
	b.signalSenders()
}
