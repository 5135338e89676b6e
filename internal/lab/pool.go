package lab

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/tidepool-net/tidepool/internal/lab/result"
	"github.com/tidepool-net/tidepool/internal/lab/simulation"
)

type jobResult struct {
	job job
	run *result.Trial
	err error
}

// work runs jobs in virtual time with several workers, in approximately the given order. It calls
// done with each result, one call at a time and in any order. It returns at the first error or when
// ctx ends, and drops the results of jobs that are still running.
func work(
	ctx context.Context, s *Study, jobs []job, o Options, done func(job, *result.Trial) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	todo, results := make(chan job), make(chan jobResult)
	go func() {
		defer close(todo)
		for _, j := range jobs {
			select {
			case todo <- j:
			case <-ctx.Done():
				return
			}
		}
	}()
	var running sync.WaitGroup
	for range max(1, min(o.Workers, len(jobs))) {
		running.Go(func() {
			var cache simulation.ObjectCache
			for j := range todo {
				t, err := attempt(s, j, o, &cache)
				select {
				case results <- jobResult{j, t, err}:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for range jobs {
		select {
		case o := <-results:
			if o.err == nil {
				o.err = done(o.job, o.run)
			}
			if o.err != nil {
				return o.err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	running.Wait()
	return nil
}

// attempt runs a job. The error of a panic names the job, so that it can be reproduced.
func attempt(s *Study, j job, o Options, cache *simulation.ObjectCache) (
	t *result.Trial, err error,
) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v: %v\n%s", j, r, debug.Stack())
		}
	}()
	return playRun(s, j, o, cache)
}
