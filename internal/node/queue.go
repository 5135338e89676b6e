package node

import (
	"context"
	"sync"
)

// Queue passes values from the loop to one reader. The reader may be slow, because the loop never
// waits for it.
type Queue[T any] struct {
	// Lost returns the value that replaces values for which the queue had no room. It may be nil.
	Lost func(missed int) T

	most   int
	mu     sync.Mutex
	list   []T
	missed int
	spare  []T           // memory for list
	ready  chan struct{} // receives a token when there are values
	ended  chan struct{}
	end    sync.Once
}

// NewQueue returns a Queue that holds up to most values.
func NewQueue[T any](most int) *Queue[T] {
	return &Queue[T]{most: most, ready: make(chan struct{}, 1), ended: make(chan struct{})}
}

// Add adds a value, and reports whether there was room.
func (n *Queue[T]) Add(v T) (room bool) {
	n.mu.Lock()
	if room = len(n.list) < n.most; room {
		n.list = append(n.list, v)
	} else {
		n.missed++
	}
	n.mu.Unlock()
	wake(n.ready)
	return room
}

// End says that no value follows.
func (n *Queue[T]) End() { n.end.Do(func() { close(n.ended) }) }

// Ended reports whether End was called.
func (n *Queue[T]) Ended() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// Each calls f with each value, in order, until End. It returns earlier if ctx ends or stop is
// closed.
func (n *Queue[T]) Each(ctx context.Context, stop <-chan struct{}, f func(T)) {
	for over := false; !over; {
		select {
		case <-n.ready:
		case <-n.ended:
			over = true
		case <-ctx.Done():
			over = true
		case <-stop:
			over = true
		}
		n.Rest(f)
	}
}

// Rest calls f with the values that are still waiting.
func (n *Queue[T]) Rest(f func(T)) {
	n.mu.Lock()
	list, missed := n.list, n.missed
	n.list, n.spare, n.missed = n.spare[:0], nil, 0
	n.mu.Unlock()
	for _, v := range list {
		f(v)
	}
	if missed > 0 && n.Lost != nil {
		f(n.Lost(missed))
	}
	clear(list)
	n.mu.Lock()
	n.spare = list
	n.mu.Unlock()
}
