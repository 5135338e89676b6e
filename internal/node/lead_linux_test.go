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

// eachSecond runs test with the ways of waiting that have two seats.
func eachSecond(t *testing.T, test func(t *testing.T, w *epollWaiter)) {
	t.Helper()
	eachWaiter(t, func(t *testing.T, w waiter) {
		if e, ok := w.(*epollWaiter); ok {
			test(t, e)
		}
	})
}

// TestNoDatagramIsLost has datagrams come to a loop and to leaders who crowd in beside it, with
// others who only look in: each is read by somebody, soon.
func TestNoDatagramIsLost(t *testing.T) {
	eachSecond(t, func(t *testing.T, w *epollWaiter) {
		a, b := pair(t)
		require.NoError(t, w.Add(a, 5))
		var read atomic.Int64
		var over atomic.Bool
		look := func(tokens []int) { // the owner's
			var p [8]byte
			for range tokens {
				if _, err := unix.Read(a, p[:]); err == nil {
					read.Add(1)
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
			w.Leave() // the loop has to know
		}
		var wg sync.WaitGroup
		wg.Go(func() { // the loop
			for !over.Load() {
				ready, err := w.Wait(-1, nil)
				assert.NoError(t, err)
				look(ready)
			}
			w.Dismiss()
		})
		var leads sync.Mutex // one at a time
		for range 2 {
			wg.Go(func() {
				for !over.Load() {
					leads.Lock()
					if w.Enter() {
						ready, owner := w.Lead(50*time.Microsecond, nil)
						if owner {
							look(ready)
							leave()
						}
					}
					leads.Unlock()
				}
			})
		}
		wg.Go(func() {
			for !over.Load() {
				if w.Enter() {
					leave()
				}
			}
		})
		defer wg.Wait()
		defer w.Ring()
		defer over.Store(true)
		for n := range stressTimes() {
			_, err := unix.Write(b, []byte("x"))
			require.NoError(t, err)
			start := time.Now()
			for read.Load() <= n {
				require.Less(t, time.Since(start), patience, "datagram %d was lost", n)
				runtime.Gosched()
			}
		}
	})
}

// TestDismiss has a leader leave, and not before the loop goes on.
func TestDismiss(t *testing.T) {
	eachSecond(t, func(t *testing.T, w *epollWaiter) {
		w.Dismiss() // nobody
		for range 50 {
			_, err := w.Wait(0, nil)
			require.NoError(t, err)
			require.True(t, w.Yield())
			var left atomic.Bool
			done := make(chan struct{})
			require.True(t, w.Enter())
			go func() {
				defer close(done)
				for owner := true; owner; { // a ring brings it back once more
					_, owner = w.Lead(patience, nil)
				}
				left.Store(true)
			}()
			enter(t, w)
			w.Dismiss()
			select {
			case <-done:
			case <-time.After(patience):
				require.Fail(t, "the leader sits on")
			}
			assert.True(t, left.Load())
		}
	})
}
