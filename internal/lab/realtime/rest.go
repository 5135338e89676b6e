package realtime

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/lab/gauge"
)

// asleep is how many threads of an end sleep in the kernel: its node's loop and its sleeper.
const asleep = 2

// spareProcessors gives Go a processor more for each thread that sleeps in the kernel, until undo.
// Such a thread keeps its own for up to 10 ms if nobody has a use for it at once, so that on a
// machine of two the arm's timers, and its goroutines, would be as late.
func spareProcessors() (undo func()) {
	was := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + asleep)
	return func() { runtime.GOMAXPROCS(was) }
}

// rests is how late an arm woke up from its own rests.
type rests struct {
	mu   sync.Mutex
	late gauge.Histogram
}

// until rests until a time, and reports whether it came before ctx was over.
func (r *rests) until(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late.Add(max(0, time.Since(at)))
		return true
	case <-ctx.Done():
		return false
	}
}

// lateness is what came of it.
func (r *rests) lateness() Lateness {
	r.mu.Lock()
	defer r.mu.Unlock()
	return latenessOf(&r.late)
}
