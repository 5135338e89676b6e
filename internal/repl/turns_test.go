package repl

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestTurns: who writes waits while a key is dealt with, and a key comes before the next who writes.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e turns
		var said bytes.Buffer
		w := between{&said, &e}
		e.begin() // no line is asked for, so this is nobody's key
		_, _ = w.Write([]byte("a"))
		e.edit(true)
		e.begin()
		go func() { _, _ = w.Write([]byte("b")) }()
		synctest.Wait()
		assert.Equal(t, "a", said.String(), "the editor is busy")
		e.wait()
		synctest.Wait()
		assert.Equal(t, "ab", said.String())

		e.writing = 1 // somebody else is at it
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
		e.edit(false) // that was the end of the line
		synctest.Wait()
		assert.Equal(t, "abc", said.String())
	})
}
