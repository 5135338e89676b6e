package examine

import (
	"sync"
	"time"
)

// stalls counts how often this process got no CPU for longer than stallTime. A check that fails
// during a stall says nothing about the subject.
var stalls stallCounter

// stallTime is the delay from which the examiner counts as late.
const stallTime = 2 * leastRTT

// stallCounter checks the clock at short intervals while it has users.
type stallCounter struct {
	mu    sync.Mutex
	users int
	count int
	last  time.Time
	timer *time.Timer
}

// begin starts counting for a user, and returns the current count.
func (s *stallCounter) begin() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users == 1 {
		s.last = time.Now()
		s.timer = time.AfterFunc(stallTime/4, s.look)
	}
	return s.count
}

// look counts a stall if it was called late.
func (s *stallCounter) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users == 0 {
		return
	}
	now := time.Now()
	if now.Sub(s.last) > stallTime {
		s.count++
	}
	s.last = now
	s.timer.Reset(stallTime / 4)
}

// now returns the current count, including a stall in progress.
func (s *stallCounter) now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users > 0 && time.Since(s.last) > stallTime {
		return s.count + 1
	}
	return s.count
}

// end stops counting for a user.
func (s *stallCounter) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.timer.Stop()
	}
}
