// Package linktest joins devices in memory, for tests that want links without
// sockets: what one end is given, the other delivers.
package linktest

import (
	"net"
	"sync"

	"github.com/tidepool-net/tidepool/internal/buffer"
	"github.com/tidepool-net/tidepool/internal/link"
)

// Config describes a pipe.
type Config struct {
	// IfaceA and IfaceB are the numbers that each end's node has for it.
	IfaceA, IfaceB int
	// Packets is how many packets are under way at most in each direction;
	// 0: 1024. A train that does not fit is refused, unless nothing else is
	// under way.
	Packets int
	// Lose, if set, is asked about every packet, in order: true drops it. It
	// may be called by the owners of both ends at once.
	Lose func(packet []byte) bool
}

// Pipe is one end of a pipe. Each end has its owner; the two may be different
// goroutines.
type Pipe struct {
	iface int
	lose  func([]byte) bool
	in    *lane
	out   *lane
	lent  []buffer.Frame
}

// lane is one direction. Writers copy in, the reader takes all there is.
type lane struct {
	mu      sync.Mutex
	frames  []buffer.Frame
	packets int // in frames and lent
	taken   int // of packets: lent to the reader
	limit   int
	closed  bool
	ready   func()
}

var _ link.Feeder = (*Pipe)(nil)

// NewPipe returns two devices that are each other's neighbour.
func NewPipe(cfg Config) (a, b *Pipe) {
	if cfg.Packets == 0 {
		cfg.Packets = 1024
	}
	ab, ba := &lane{limit: cfg.Packets}, &lane{limit: cfg.Packets}
	return &Pipe{iface: cfg.IfaceA, lose: cfg.Lose, in: ba, out: ab},
		&Pipe{iface: cfg.IfaceB, lose: cfg.Lose, in: ab, out: ba}
}

// ReadBatch implements link.Device.
func (p *Pipe) ReadBatch(frames []buffer.Frame) (int, error) {
	if len(p.lent) == 0 {
		if err := p.fetch(); err != nil {
			return 0, err
		}
	}
	n := copy(frames, p.lent)
	for i := range frames[:n] {
		frames[i].Iface = p.iface
	}
	if p.lent = p.lent[n:]; len(p.lent) == 0 && n < len(frames) {
		// The owner takes a short batch for the last, and may have been told already of what
		// came since; but these frames are lent, so that must wait for the next call.
		p.in.remind()
	}
	return n, nil
}

// remind tells the reader again if something waits.
func (l *lane) remind() {
	l.mu.Lock()
	var ready func()
	if len(l.frames) > 0 {
		ready = l.ready
	}
	l.mu.Unlock()
	if ready != nil {
		ready()
	}
}

// fetch takes everything that is under way.
func (p *Pipe) fetch() error {
	l := p.in
	l.mu.Lock()
	defer l.mu.Unlock()
	l.packets -= l.taken
	l.taken = l.packets
	p.lent, l.frames = l.frames, nil
	switch {
	case len(p.lent) > 0:
		return nil
	case l.closed:
		return net.ErrClosed
	}
	return link.ErrWouldBlock
}

// WriteBatch implements link.Device.
func (p *Pipe) WriteBatch(trains []buffer.Train) (int, error) {
	l := p.out
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return 0, net.ErrClosed
	}
	empty := len(l.frames) == 0
	n := 0
	for n < len(trains) && (l.packets == 0 || l.packets+trains[n].Count <= l.limit) {
		p.carry(&trains[n])
		n++
	}
	var ready func()
	if empty && len(l.frames) > 0 {
		ready = l.ready
	}
	l.mu.Unlock()
	if ready != nil {
		ready()
	}
	return n, nil
}

// carry copies what survives of a train. Survivors of one size go on as a train.
func (p *Pipe) carry(t *buffer.Train) {
	l := p.out
	var data []byte
	for _, piece := range t.Pieces {
		data = append(data, piece...)
	}
	var f buffer.Frame
	for len(data) > 0 {
		n := min(t.Size, len(data))
		packet := data[:n:n]
		data = data[n:]
		if p.lose != nil && p.lose(packet) {
			continue
		}
		l.packets++
		if f.Size == 0 {
			f.Size = n
		}
		f.Data = append(f.Data, packet...)
	}
	if len(f.Data) > 0 {
		l.frames = append(l.frames, f)
	}
}

// Room implements link.Device.
func (p *Pipe) Room() int {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.limit - p.out.packets
}

// Pending implements link.Device: a pipe queues nothing.
func (p *Pipe) Pending() int { return 0 }

// FD implements link.Device: there is none.
func (p *Pipe) FD() int { return -1 }

// Feed implements link.Feeder.
func (p *Pipe) Feed(ready func()) {
	p.in.mu.Lock()
	p.in.ready = ready
	now := len(p.in.frames) > 0
	p.in.mu.Unlock()
	if now {
		ready()
	}
}

// Close ends both directions. The other end may still read what is under way.
func (p *Pipe) Close() error {
	for _, l := range []*lane{p.in, p.out} {
		l.mu.Lock()
		l.closed = true
		ready := l.ready
		l.mu.Unlock()
		if ready != nil {
			ready()
		}
	}
	return nil
}
