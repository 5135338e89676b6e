package main

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// runner runs seeds on several workers.
type runner struct {
	first, seeds uint64 // seeds 0: without an end
	workers      int
	out          io.Writer
	hash         bool // print a line for each seed
	ipv6         bool
	progress     time.Duration // between lines about it; 0: a while that suits a reader
}

const maxFailures = 10

// run plays the seeds until they or the context end, or too many have failed.
func (r *runner) run(ctx context.Context) *tally {
	var (
		next  atomic.Uint64
		mu    sync.Mutex
		total = newTally()
		work  sync.WaitGroup
		began = time.Now()
		told  = began
	)
	total.ipv6 = r.ipv6
	every := cmp.Or(r.progress, 30*time.Second)
	stopped := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(total.failures) >= maxFailures
	}
	for range r.workers {
		work.Go(func() {
			for ctx.Err() == nil && !stopped() {
				n := next.Add(1) - 1
				if r.seeds > 0 && n >= r.seeds {
					return
				}
				o := play(r.first+n, r.ipv6, nil)
				mu.Lock()
				total.add(o)
				if r.hash {
					say(r.out, "seed %06d hash %016x %v\n", o.seed, o.hash, o.ends)
				}
				if o.failure != "" {
					say(r.out, "%s\n", o.failure)
				}
				if time.Since(told) > every {
					told = time.Now()
					say(r.out, "%d seeds, %.0f a second\n", total.seeds,
						float64(total.seeds)/time.Since(began).Seconds())
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return total
}
