package repl

import (
	"io"
	"sync"
)

// turns alternates between the editor and writers above its prompt. The editor guards its line, but
// not its list of completions, which a concurrent writer could find gone.
type turns struct {
	mu      sync.Mutex
	change  *sync.Cond // nil: not used yet
	editing bool       // the editor reads a line
	next    bool       // the editor has a key, which precedes the next writer
	busy    bool       // the editor processes a key
	writing int        // number of writers
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

// begin waits until no output is being written, before the editor processes a key.
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

// between is a writer that waits while the editor processes a key.
type between struct {
	to    io.Writer
	turns *turns
}

func (b between) Write(p []byte) (int, error) {
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
