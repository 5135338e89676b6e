package node

import (
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// patience is far longer than any wait here. A wait that lasts that long has lost its wake-up.
const patience = 20 * time.Second

// waiters returns this platform's waiters.
func waiters(tb testing.TB) map[string]waiter {
	tb.Helper()
	all := map[string]waiter{"fed": newFeedWaiter()}
	if w, err := newWaiter(waitBest); assert.NoError(tb, err) {
		all["best"] = w
	}
	maps.Copy(all, platformWaiters(tb))
	tb.Cleanup(func() {
		for _, w := range all {
			assert.NoError(tb, w.Close())
		}
	})
	return all
}

func eachWaiter(t *testing.T, test func(t *testing.T, w waiter)) {
	t.Helper()
	for name, w := range waiters(t) {
		t.Run(name, func(t *testing.T) { test(t, w) })
	}
}

// Wait returns on time for each reason.
func TestWaitReturns(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		t.Log("# a timeout is kept, and a poll does not wait")
		start := time.Now()
		_, err := w.Wait(3*time.Millisecond, nil)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, time.Since(start), 3*time.Millisecond)
		_, err = w.Wait(0, nil)
		require.NoError(t, err)

		t.Log("# a ring while the loop is awake is answered by the next Wait")
		w.Ring()
		w.Ring()
		start = time.Now()
		ready, err := w.Wait(patience, nil)
		require.NoError(t, err)
		assert.Empty(t, ready)
		assert.Less(t, time.Since(start), patience/2)

		t.Log("# each call of ready reports the token once, appended to the slice")
		feed := w.Feed(7, w.Ring)
		other := w.Feed(900, w.Ring)
		feed()
		feed()
		ready, err = w.Wait(patience, []int{1})
		require.NoError(t, err)
		assert.Equal(t, []int{1, 7}, ready)
		other()
		feed()
		ready, err = w.Wait(-1, nil)
		require.NoError(t, err)
		assert.Equal(t, []int{7, 900}, ready)

		t.Log("# no token is left")
		ready, err = w.Wait(0, nil)
		require.NoError(t, err)
		assert.Empty(t, ready)
	})
}

// requesters are goroutines that each post a question, wake up the loop, and wait until it has
// answered all questions. The loop sleeps after each round. Each wake-up races with that sleep and
// with the other wake-ups. If one is lost, no later one replaces it.
type requesters struct {
	asked, answered [4]atomic.Int64
	rounds          [4]chan struct{} // receives a token when the goroutine may ask again
	wg              sync.WaitGroup
}

func (a *requesters) start(i int, wake func()) {
	a.rounds[i] = make(chan struct{}, 1)
	a.wg.Go(func() {
		for range a.rounds[i] {
			a.asked[i].Add(1)
			wake()
		}
	})
}

// all reports whether the n-th question of each goroutine was answered.
func (a *requesters) all(n int64) bool {
	for i := range a.answered {
		if a.answered[i].Load() < n {
			return false
		}
	}
	return true
}

func (a *requesters) answer(i int) { a.answered[i].Store(a.asked[i].Load()) }

// serve waits and answers, round after round. After a lost wake-up it would wait until the timeout.
func (a *requesters) serve(t *testing.T, w waiter, answer func(tokens []int)) {
	t.Helper()
	defer a.wg.Wait()
	for _, round := range a.rounds {
		defer close(round)
	}
	var tokens []int
	begin := time.Now()
	for n := int64(1); n <= stressTimes() && time.Since(begin) < stressTime; n++ {
		for _, round := range a.rounds {
			round <- struct{}{}
		}
		for !a.all(n) {
			start := time.Now()
			var err error
			tokens, err = w.Wait(patience, tokens[:0])
			require.NoError(t, err)
			require.Less(t, time.Since(start), patience, "a wake-up was lost in round %d", n)
			answer(tokens)
		}
	}
}

// stressTimes is how many times a race is tried.
func stressTimes() int64 {
	switch {
	case testenv.Long():
		return 30_000
	case testing.Short():
		return 1_000
	}
	return 6_000
}

// stressTime stops the test before stressTimes on a busy machine.
const stressTime = 5 * time.Second

func TestNoWakeUpIsLost(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		var a requesters
		for i := range a.asked {
			a.start(i, w.Ring)
		}
		a.serve(t, w, func([]int) {
			for i := range a.asked {
				a.answer(i)
			}
		})
	})
}

// TestNoTokenIsLost repeats the test with devices without a descriptor, whose tokens must be
// reported.
func TestNoTokenIsLost(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		var a requesters
		for i := range a.asked {
			a.start(i, w.Feed(i, w.Ring))
		}
		a.serve(t, w, func(tokens []int) {
			for _, i := range tokens {
				a.answer(i)
			}
		})
	})
}

// An application may ring after Close.
func TestRingAfterClose(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.Ring()
				}
			}
		})
		for range 100 {
			_, err := w.Wait(time.Microsecond, nil)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		require.NoError(t, w.Close(), "closing twice is harmless")
		w.Ring()
		close(stop)
		wg.Wait()
	})
}

// Wait allocates no memory after its first call.
func TestWaitAllocates(t *testing.T) {
	eachWaiter(t, func(t *testing.T, w waiter) {
		ready := w.Feed(0, w.Ring)
		tokens := make([]int, 0, 8)
		assert.Zero(t, testing.AllocsPerRun(100, func() {
			ready()
			tokens, _ = w.Wait(patience, tokens[:0])
			w.Ring()
			tokens, _ = w.Wait(-1, tokens[:0])
			tokens, _ = w.Wait(10*time.Microsecond, tokens[:0])
		}))
	})
}
