package node

import (
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// TestWriteSendsWhileAnotherGoroutineWaits checks that a write on a clock that follows package time
// has sent when it returns, although another goroutine held the clock's lock to wait for the
// network. Otherwise two writes at one instant sometimes become one packet.
func TestWriteSendsWhileAnotherGoroutineWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		defer c.Follow(1)()
		n, _ := driven(t, &c, "")
		defer n.Close()
		client, server := connect(t, n, n, "10.0.0.1:80")
		wrote := make(chan int)
		c.mu.Lock() // holds the lock as Time.settle does
		go func() {
			_, err := client.Write([]byte("x"))
			assert.NoError(t, err)
			wrote <- server.in.ring.Len()
		}()
		for !c.dirty.Load() {
			runtime.Gosched()
		}
		c.mu.Unlock()
		assert.Equal(t, 1, <-wrote)
	})
}
