package repl

import (
	"io"
	"sync"
)

// turns has the editor and those who write above its prompt take turns. The editor guards its line,
// but not its list of completions: who wrote while a key changed that could find it gone.
type turns struct {
	mu      sync.Mutex
	change  *sync.Cond // nil: nobody has waited yet
	editing bool       // a line is asked for
	next    bool       // there is a key for the editor, which comes before the next who writes
	busy    bool       // the editor deals with it
	writing int        // how many write
}

// changed is the condition. The caller holds the lock.
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

// begin is called when there is a key for the editor. It returns once nobody writes.
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

// between is a writer that waits while the editor deals with a key.
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
