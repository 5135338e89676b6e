package link

import (
	"net"
	"sync"

	"github.com/tidepool-net/tidepool/internal/buffer"
)

// pipeLane is one direction of a pipe. The writer copies trains in. The reader takes all of them at
// once, and returns the memory of the previous ones.
type pipeLane struct {
	mu      sync.Mutex
	fresh   trainBuffer
	spare   trainBuffer // trainBuffer that the reader uses
	frames  []buffer.Frame
	packets int // number of packets in fresh
	limit   int
	filter  func(train []byte) bool // selects the trains to deliver; nil: all trains
	full    bool                    // the writer found no room and waits for a signal
	closed  side                    // the sides that are closed
	ready   func()                  // signals the reader
	vacant  func()                  // signals the writer when there is room
}

// side is one end of a lane: the reader, the writer, or both.
type side uint8

const (
	reader side = 1 << iota
	writer
)

// trainBuffer is a list of trains in contiguous memory.
type trainBuffer struct {
	data   []byte
	spans  []span
	first  int // index of the first span that was not popped
	popped int // bytes of data that were popped
}

type span struct{ end, size int }

func (p *trainBuffer) clear() { *p = trainBuffer{data: p.data[:0], spans: p.spans[:0]} }

// compact moves the remaining data to the front when at least half has been popped.
func (p *trainBuffer) compact() {
	const worth = 64 << 10
	if p.popped < worth || p.popped < len(p.data)/2 {
		return
	}
	p.data = p.data[:copy(p.data, p.data[p.popped:])]
	p.spans = p.spans[:copy(p.spans, p.spans[p.first:])]
	for i := range p.spans {
		p.spans[i].end -= p.popped
	}
	p.first, p.popped = 0, 0
}

// put copies as many trains as fit. An empty lane accepts a train of any size.
func (l *pipeLane) put(trains []buffer.Train) (int, error) {
	l.mu.Lock()
	if l.closed != 0 {
		l.mu.Unlock()
		return 0, net.ErrClosed
	}
	empty := l.packets == 0
	n := 0
	for n < len(trains) {
		t, begin := &trains[n], len(l.fresh.data)
		if l.packets > 0 && l.packets+t.Count > l.limit {
			break
		}
		for _, piece := range t.Pieces {
			l.fresh.data = append(l.fresh.data, piece...)
		}
		n++
		if l.filter != nil && !l.filter(l.fresh.data[begin:]) {
			l.fresh.data = l.fresh.data[:begin]
			continue
		}
		l.fresh.spans = append(l.fresh.spans, span{len(l.fresh.data), t.Size})
		l.packets += t.Count
	}
	var ready func()
	if empty && l.packets > 0 {
		ready = l.ready
	}
	l.mu.Unlock()
	if ready != nil {
		ready()
	}
	return n, nil
}

// take returns all waiting trains, which are valid until the next take.
func (l *pipeLane) take(id int) []buffer.Frame {
	l.mu.Lock()
	l.fresh, l.spare = l.spare, l.fresh
	l.fresh.clear()
	l.packets = 0
	vacant := l.emptied()
	l.mu.Unlock()
	if vacant != nil {
		vacant()
	}
	l.frames = l.frames[:0]
	at := l.spare.popped
	for _, s := range l.spare.spans[l.spare.first:] {
		l.frames = append(l.frames, buffer.Frame{
			Data: l.spare.data[at:s.end:s.end], Size: s.size, Iface: id,
		})
		at = s.end
	}
	return l.frames
}

// resignal signals the reader again if packets wait.
func (l *pipeLane) resignal() {
	l.mu.Lock()
	var ready func()
	if l.packets > 0 {
		ready = l.ready
	}
	l.mu.Unlock()
	if ready != nil {
		ready()
	}
}

// pop copies one packet out of the lane.
func (l *pipeLane) pop(p []byte) (n int, ok, closed bool) {
	l.mu.Lock()
	if l.packets == 0 {
		closed = l.closed != 0
		l.mu.Unlock()
		return 0, false, closed
	}
	s := &l.fresh
	at := s.popped
	end := min(at+s.spans[s.first].size, s.spans[s.first].end)
	n = copy(p, s.data[at:end])
	if s.popped = end; end == s.spans[s.first].end {
		s.first++
	}
	var vacant func()
	if l.packets--; l.packets == 0 {
		s.clear()
	} else {
		s.compact()
	}
	vacant = l.emptied()
	l.mu.Unlock()
	if vacant != nil {
		vacant()
	}
	return n, true, false
}

// emptied returns the function that signals room; nil if the writer does not wait.
func (l *pipeLane) emptied() func() {
	if !l.full {
		return nil
	}
	l.full = false
	return l.vacant
}

// room returns how many packets the lane accepts. A closed lane accepts and drops all.
func (l *pipeLane) room() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != 0 {
		return l.limit
	}
	left := max(0, l.limit-l.packets)
	l.full = l.full || left == 0
	return left
}

func (l *pipeLane) close(s side) {
	l.mu.Lock()
	l.closed |= s
	ready, vacant := l.ready, l.vacant
	l.mu.Unlock()
	for _, f := range []func(){ready, vacant} {
		if f != nil {
			f()
		}
	}
}

// reopen allows a side that was closed to use the lane again. A reader does not get packets from
// before.
func (l *pipeLane) reopen(s side) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed &^= s
	if s == writer {
		l.vacant = nil
		return
	}
	l.fresh.clear()
	l.packets, l.ready = 0, nil
}
