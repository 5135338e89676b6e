package repl

import (
	"bytes"
	"io"
	"testing"
	"testing/synctest"

	"github.com/ergochat/readline"
	"github.com/stretchr/testify/assert"
)

// TestWritersDoNotWaitForCtrlZ checks that writers do not wait while the editor processes Ctrl-Z,
// which lasts until the process continues.
func TestWritersDoNotWaitForCtrlZ(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	e := &terminal{out: &said, mayStop: func() bool { return true }}
	e.turns.edit(true)
	e.turns.begin()
	_, ok := e.key(readline.CharCtrlZ)
	assert.True(t, ok)
	_, _ = turnWriter{&said, &e.turns}.Write([]byte("news"))
	assert.Equal(t, marksOff+"news", said.String())
	e.mayStop = func() bool { return false }
	_, ok = e.key(readline.CharCtrlZ)
	assert.False(t, ok, "no shell could continue the process")
}

// The editor locks its line and then queries the position of the cursor. A writer that waits for
// this lock must not delay the answer.
func TestTheCursorPositionDoesNotWaitForWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said bytes.Buffer
		e := &terminal{out: &said}
		e.turns.edit(true)
		line := make(chan struct{})
		go func() { _, _ = turnWriter{waits(line), &e.turns}.Write([]byte("news")) }()
		synctest.Wait()
		_, _ = e.Write(whereQuestion)
		got := make(chan string, 1)
		go func() {
			b := make([]byte, len(whereAnswer))
			_, _ = io.ReadFull(e, b)
			got <- string(b)
		}()
		synctest.Wait()
		assert.Len(t, got, 1, "the answer waits for a writer, and the writer for the line")
		close(line)
		assert.Equal(t, string(whereAnswer), <-got)
	})
}

// waits is a writer that blocks until the channel is closed.
type waits chan struct{}

func (w waits) Write(p []byte) (int, error) {
	<-w
	return len(p), nil
}

// TestEditorAndWritersTakeTurns checks that writers wait while the editor processes a key, and that
// the editor goes before the next writer.
func TestEditorAndWritersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var e turns
		var said bytes.Buffer
		w := turnWriter{&said, &e}
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
		e.edit(false) // the line is finished
		synctest.Wait()
		assert.Equal(t, "abc", said.String())
	})
}
