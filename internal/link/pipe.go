package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// Attacher is a Device that is created before its node. The node assigns it to an interface.
type Attacher interface {
	Feeder
	// Attach returns ErrAttached if the device already belongs to a node.
	Attach(id int) error
}

// ErrAttached is returned for a Device that already belongs to a node.
var ErrAttached = errors.New("link: already attached to a node")

// CloseUnattached closes a device, unless it is attached to a node.
func CloseUnattached(d Device) error {
	if a, ok := d.(Attacher); ok && errors.Is(a.Attach(0), ErrAttached) {
		return nil
	}
	return d.Close()
}

// defaultPipePackets is enough for a window of 1 MB in packets of 1400 bytes.
const defaultPipePackets = 1024

// End is one end of a pipe, which is a link in memory. It is a Device for a node, or a program
// reads and writes it, one packet per call. If the other end is closed, sent packets are lost.
type End struct {
	id       int
	attached atomic.Bool
	in, out  *pipeLane
	lent     []buffer.Frame

	programOnce sync.Once // prepares readable and writable for a program
	readable    chan struct{}
	writable    chan struct{}
}

var _ Attacher = (*End)(nil)

// Pipe returns two connected ends. Each direction queues this many packets, and the reader may use
// as many again; 0: 1024.
func Pipe(packets int) (a, b *End) {
	if packets <= 0 {
		packets = defaultPipePackets
	}
	ab, ba := &pipeLane{limit: packets}, &pipeLane{limit: packets}
	return newEnd(ba, ab), newEnd(ab, ba)
}

// ClosedEnd returns an end that is closed.
func ClosedEnd() *End {
	end, _ := Pipe(1)
	_ = end.Close() // the first Close does not fail
	return end
}

func newEnd(in, out *pipeLane) *End {
	return &End{
		in: in, out: out,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
	}
}

// Attach implements Attacher.
func (e *End) Attach(id int) error {
	if e.attached.Swap(true) {
		return ErrAttached
	}
	e.id = id
	return nil
}

// ReadBatch implements Device. It returns all waiting packets, train by train.
func (e *End) ReadBatch(frames []buffer.Frame) (int, error) {
	if len(e.lent) == 0 {
		if e.lent = e.in.take(e.id); len(e.lent) == 0 {
			return 0, ErrWouldBlock
		}
	}
	n := copy(frames, e.lent)
	if e.lent = e.lent[n:]; len(e.lent) == 0 && n < len(frames) {
		// The owner assumes after a short batch that nothing is left, and it may already have been
		// signaled for newer packets. They must wait for the next call, because these frames are in
		// use.
		e.in.resignal()
	}
	return n, nil
}

// WriteBatch implements Device.
func (e *End) WriteBatch(trains []buffer.Train) (int, error) {
	n, err := e.out.put(trains)
	if errors.Is(err, net.ErrClosed) {
		return len(trains), nil // the other end is closed
	}
	return n, err
}

// Room implements Device.
func (e *End) Room() int { return e.out.room() }

// Pending implements Device. It returns 0, because accepted packets are already delivered.
func (e *End) Pending() int { return 0 }

// FD implements Device. A pipe has no descriptor, so FD returns -1.
func (e *End) FD() int { return -1 }

// Filter makes the end drop the trains of its node for which pass returns false. Call it before the
// node is opened. pass is called with the bytes of a train, while the end is locked.
func (e *End) Filter(pass func(train []byte) bool) {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	e.out.filter = pass
}

// Feed implements Feeder. It also calls ready when there is room again, so that the owner writes.
func (e *End) Feed(ready func()) { e.feed(ready, ready) }

func (e *End) feed(ready, vacant func()) {
	e.out.mu.Lock()
	e.out.vacant = vacant
	e.out.mu.Unlock()
	e.in.mu.Lock()
	e.in.ready = ready
	now := len(e.in.fresh.spans) > 0
	e.in.mu.Unlock()
	if now {
		ready()
	}
}

// Close closes both directions. The other end may still read queued packets.
func (e *End) Close() error {
	e.in.close(reader)
	e.out.close(writer)
	return nil
}

// Reopen makes a closed end usable again, by another node or by a program. What arrived before is
// lost. Nothing may use the end at the same time.
func (e *End) Reopen() {
	e.in.reopen(reader)
	e.out.reopen(writer)
	e.lent = nil
	e.programOnce = sync.Once{}
	e.attached.Store(false)
}

// feedProgram makes the lanes signal a program that reads and writes packets.
func (e *End) feedProgram() {
	e.programOnce.Do(func() {
		e.feed(func() { token(e.readable) }, func() { token(e.writable) })
	})
}

// Read waits for a packet and copies it to p. If p is too short, the rest is lost. It returns
// io.EOF when an end is closed and nothing is left.
func (e *End) Read(p []byte) (int, error) {
	if e.attached.Load() {
		return 0, ErrAttached
	}
	e.feedProgram()
	for {
		n, ok, closed := e.in.pop(p)
		switch {
		case ok:
			token(e.readable) // wakes another waiting Read
			return n, nil
		case closed:
			token(e.readable)
			return 0, io.EOF
		}
		<-e.readable
	}
}

// TryRead is like Read, but does not wait.
func (e *End) TryRead(p []byte) (n int, ok bool) {
	if e.attached.Load() {
		return 0, false
	}
	n, ok, _ = e.in.pop(p)
	return n, ok
}

// Write sends one packet. It waits while the pipe is full.
func (e *End) Write(p []byte) (int, error) {
	if e.attached.Load() {
		return 0, ErrAttached
	}
	if len(p) == 0 || len(p) > maxPacket {
		return 0, errPacketSize
	}
	e.feedProgram()
	one := [1]buffer.Train{{Pieces: [][]byte{p}, Size: len(p), Count: 1, Bytes: len(p)}}
	for {
		n, err := e.out.put(one[:])
		if err != nil {
			token(e.writable)
			return 0, err
		}
		if n == 1 {
			return len(p), nil
		}
		if e.out.room() > 0 { // registers for a signal if there is no room
			continue
		}
		<-e.writable
		token(e.writable) // wakes another waiting Write
	}
}

var errPacketSize = errors.New("link: empty or oversized packet")

// token puts a token into a channel, which wakes a waiting goroutine.
func token(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
