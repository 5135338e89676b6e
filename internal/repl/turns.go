package repl

import (
	"io"
	"sync"
)

// turns makes the editor and the writers above its prompt take turns. The editor has a lock for its
// line, but none for its list of completions: it could remove the list while a writer uses it.
type turns struct {
	mu      sync.Mutex
	change  *sync.Cond // created at the first use
	editing bool       // the editor reads a line
	next    bool       // the editor has a key and goes before the next writer
	busy    bool       // the editor processes a key
	writing int        // number of active writers
}

// changed returns the condition. The caller holds the lock.
func (t *turns) changed() *sync.Cond {
	if t.change == nil {
		t.change = sync.NewCond(&t.mu)
	}
	return t.change
}

func (t *turns) edit(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.editing, t.busy = on, false
	t.changed().Broadcast()
}

func (t *turns) wait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	t.changed().Broadcast()
}

// begin waits until no output is being written. The editor calls it before it processes a key.
func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next = true
	for t.writing > 0 {
		t.changed().Wait()
	}
	t.next, t.busy = false, t.editing
	t.changed().Broadcast()
}

// turnWriter is a writer that waits while the editor processes a key.
type turnWriter struct {
	to    io.Writer
	turns *turns
}

func (b turnWriter) Write(p []byte) (int, error) {
	t := b.turns
	t.mu.Lock()
	for t.busy || t.next {
		t.changed().Wait()
	}
	t.writing++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.writing--
		t.changed().Broadcast()
	}()
	return b.to.Write(p)
}
