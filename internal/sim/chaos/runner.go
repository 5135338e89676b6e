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
	first, seeds uint64 // number of seeds; 0: no limit
	workers      int
	out          io.Writer
	hash         bool // prints a line for each seed
	ipv6         bool
	progress     time.Duration // time between lines of progress; 0: a readable interval
}

const maxFailures = 10

// run runs the seeds until all are done, ctx ends, or too many have failed.
func (r *runner) run(ctx context.Context) *tally {
	var (
		next     atomic.Uint64
		mu       sync.Mutex
		total    = newTally()
		work     sync.WaitGroup
		began    = time.Now()
		reported = began
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
				if time.Since(reported) > every {
					reported = time.Now()
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
