package repl

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/ergochat/readline"
	"github.com/stretchr/testify/assert"
)

// TestWhoStopsWaitsForNobody: Ctrl-Z takes effect only after the process is continued. Writers do
// not wait for that key.
func TestWhoStopsWaitsForNobody(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	e := &terminal{out: &said, mayStop: func() bool { return true }}
	e.turns.edit(true)
	e.turns.begin()
	_, ok := e.key(readline.CharCtrlZ)
	assert.True(t, ok)
	_, _ = between{&said, &e.turns}.Write([]byte("news"))
	assert.Equal(t, marksOff+"news", said.String())
	e.mayStop = func() bool { return false }
	_, ok = e.key(readline.CharCtrlZ)
	assert.False(t, ok, "no shell could continue the process")
}

// TestTurns: writers wait while a key is processed, and a key comes before the next writer.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e turns
		var said bytes.Buffer
		w := between{&said, &e}
		e.begin() // no line is being read, so the editor ignores the key
		_, _ = w.Write([]byte("a"))
		e.edit(true)
		e.begin()
		go func() { _, _ = w.Write([]byte("b")) }()
		synctest.Wait()
		assert.Equal(t, "a", said.String(), "the editor is busy")
		e.wait()
		synctest.Wait()
		assert.Equal(t, "ab", said.String())

		e.writing = 1 // another writer is active
		go e.begin()
		synctest.Wait()
		go func() { _, _ = w.Write([]byte("c")) }()
		synctest.Wait()
		assert.Equal(t, "ab", said.String(), "a key waits")
		e.mu.Lock()
		e.writing--
		e.changed().Broadcast()
		e.mu.Unlock()
		synctest.Wait()
		assert.Equal(t, "ab", said.String(), "the editor is busy with it")
		e.edit(false) // the line is complete
		synctest.Wait()
		assert.Equal(t, "abc", said.String())
	})
}
