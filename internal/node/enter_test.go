package node

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waiting runs a loop that waits. It returns a token for each Wait that has returned.
func waiting(t *testing.T, w waiter, timeout time.Duration) (returned <-chan struct{}, stop func()) {
	t.Helper()
	c := make(chan struct{}, 1)
	var over atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !over.Load() {
			_, err := w.Wait(timeout, nil)
			assert.NoError(t, err)
			wake(c)
		}
	})
	return c, func() {
		over.Store(true)
		w.Ring()
		wg.Wait()
	}
}

// enter enters as soon as the loop is waiting.
func enter(t *testing.T, w waiter) {
	t.Helper()
	require.Eventually(t, w.Enter, patience, 50*time.Microsecond)
}

// yield serves rings and yields, as often as necessary. A loop whose timeout has passed rings every
// millisecond.
func yield(t *testing.T, w waiter) {
	t.Helper()
	for start, gone := time.Now(), false; !gone; gone = w.Yield() {
		require.Less(t, time.Since(start), patience)
		_, err := w.Wait(0, nil)
		require.NoError(t, err)
	}
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		require.Fail(t, "nobody came", what)
	}
}

// Another goroutine can own the stack while the loop waits.
func TestEnter(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		assert.False(t, w.Enter(),
			"the goroutine that created the waiter is the owner; Enter rings")
		_, err := w.Wait(-1, nil)
		require.NoError(t, err)

		returned, stop := waiting(t, w, -1)
		defer stop()

		t.Log("# a goroutine enters and leaves while the loop sleeps; its Enter woke the loop")
		enter(t, w)
		assert.False(t, w.Enter(), "the stack has one owner at a time")
		assert.False(t, w.Yield(), "the owner must answer the ring first")
		yield(t, w)

		t.Log("# the loop finishes the work that a goroutine leaves")
		enter(t, w)
		for len(returned) > 0 {
			<-returned
		}
		w.Leave()
		await(t, returned, "Leave rings")
	})
}

// The loop meets its deadline, even if the timeout passes while another goroutine owns the stack
// and leaves without a ring.
func TestLoopMeetsItsDeadline(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		bell := doorbellOf(t, w)
		returned, stop := waiting(t, w, 2*time.Millisecond)
		defer stop()
		enter(t, w)
		bell.answer()
		require.Eventually(t, func() bool { return bell.state.Load() == rung },
			patience, 50*time.Microsecond, "the loop's timeout has passed")
		for len(returned) > 0 { // discard earlier tokens: the loop cannot return while another goroutine owns the stack
			<-returned
		}
		yield(t, w)
		await(t, returned, "the loop's timeout was lost")
	})
}
