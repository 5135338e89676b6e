package node

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// eachSecond runs test with each waiter that has two slots.
func eachSecond(t *testing.T, test func(t *testing.T, w *epollWaiter)) {
	t.Helper()
	eachWaiter(t, func(t *testing.T, w waiter) {
		if e, ok := w.(*epollWaiter); ok {
			test(t, e)
		}
	})
}

// Datagrams arrive one by one for a loop, two leaders and a goroutine that briefly owns the stack.
// They compete for each datagram and wait for the next one. No goroutine spins, so the duration of
// the test is that of the kernel's wake-ups.
func TestNoDatagramIsLost(t *testing.T) {
	eachSecond(t, func(t *testing.T, w *epollWaiter) {
		a, b := pair(t)
		require.NoError(t, w.Add(a, 5))
		var over atomic.Bool
		read := make(chan struct{}, 1)
		look := func(tokens []int) { // the owner calls it
			var p [8]byte
			for range tokens {
				if _, err := unix.Read(a, p[:]); err == nil {
					read <- struct{}{}
				}
			}
		}
		leave := func() {
			for !over.Load() {
				if w.Yield() {
					return
				}
				ready, _ := w.Wait(0, nil)
				look(ready)
			}
			w.Leave() // notifies the loop
		}
		var wg sync.WaitGroup
		wg.Go(func() { // this goroutine runs the loop
			for !over.Load() {
				ready, err := w.Wait(-1, nil)
				assert.NoError(t, err)
				look(ready)
			}
			w.Dismiss()
		})
		// For each datagram, every competitor tries a few times to become the owner.
		var tries [3]chan struct{}
		compete := func(i int, try func()) {
			tries[i] = make(chan struct{}, 1)
			wg.Go(func() {
				for range tries[i] {
					for range 100 {
						try()
						runtime.Gosched()
					}
				}
			})
		}
		var leads sync.Mutex // allows one leader at a time
		for i := range 2 {
			compete(i, func() {
				leads.Lock()
				defer leads.Unlock()
				if w.Enter() {
					ready, owner := w.Lead(50*time.Microsecond, nil)
					if owner {
						look(ready)
						leave()
					}
				}
			})
		}
		compete(2, func() {
			if w.Enter() {
				leave()
			}
		})
		defer wg.Wait()
		defer w.Ring()
		defer over.Store(true)
		defer func() {
			for _, try := range tries {
				close(try)
			}
		}()
		for n, start := int64(0), time.Now(); n < stressTimes() && time.Since(start) < stressTime; n++ {
			for _, try := range tries {
				wake(try)
			}
			_, err := unix.Write(b, []byte("x"))
			require.NoError(t, err)
			select {
			case <-read:
			case <-time.After(patience):
				require.Fail(t, "a datagram was lost", "number %d", n)
			}
		}
	})
}

// Dismiss ends the leader's wait before Dismiss returns.
func TestDismiss(t *testing.T) {
	eachSecond(t, func(t *testing.T, w *epollWaiter) {
		w.Dismiss() // there is no leader
		for range 50 {
			_, err := w.Wait(0, nil)
			require.NoError(t, err)
			require.True(t, w.Yield())
			var left atomic.Bool
			done := make(chan struct{})
			require.True(t, w.Enter())
			go func() {
				defer close(done)
				for owner := true; owner; { // a goroutine that was rung is the owner again
					_, owner = w.Lead(patience, nil)
				}
				left.Store(true)
			}()
			enter(t, w)
			w.Dismiss()
			select {
			case <-done:
			case <-time.After(patience):
				require.Fail(t, "Dismiss did not end the leader's wait")
			}
			assert.True(t, left.Load())
		}
	})
}
