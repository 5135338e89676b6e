package link

import (
	"context"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookupPatience bounds one round of lookups.
	lookupPatience = 5 * time.Second
	// openPatience is how long opening waits for the first round.
	openPatience = time.Second
	// retryFirst is after how long a name that has no address is tried again;
	// the time doubles up to ResolveEvery.
	retryFirst = 250 * time.Millisecond
)

// resolver looks names up in a goroutine of its own and shows the owner what it
// found as a map that nobody writes to any more.
type resolver struct {
	names  []string
	cfg    Config
	found  atomic.Pointer[map[string]netip.Addr]
	failed atomic.Pointer[map[string]error] // of the last round
	kick   chan struct{}                    // a name may have moved
	cancel context.CancelFunc
	done   chan struct{}
}

// newResolver starts looking names up, and returns when the first round is over
// or has taken too long.
func newResolver(cfg Config, names []string) *resolver {
	first := make(chan struct{})
	r := startResolver(cfg, names, &map[string]netip.Addr{}, first)
	patience := time.NewTimer(openPatience)
	defer patience.Stop()
	select {
	case <-first:
	case <-patience.C:
	}
	return r
}

// startResolver starts looking names up, of which some may have been found before. It closes first
// when the first round is over.
func startResolver(
	cfg Config, names []string, found *map[string]netip.Addr, first chan<- struct{},
) *resolver {
	ctx, cancel := context.WithCancel(context.Background())
	r := &resolver{
		names: names, cfg: cfg, cancel: cancel,
		kick: make(chan struct{}, 1), done: make(chan struct{}),
	}
	r.found.Store(found)
	r.failed.Store(&map[string]error{})
	go r.run(ctx, first)
	return r
}

func (r *resolver) run(ctx context.Context, first chan<- struct{}) {
	defer close(r.done)
	all := r.round(ctx)
	close(first)
	wait := retryFirst
	for ctx.Err() == nil {
		if all {
			wait = r.cfg.ResolveEvery
		}
		timer := time.NewTimer(min(wait, r.cfg.ResolveEvery))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.kick:
			r.pause(ctx)
		}
		timer.Stop()
		if all {
			wait = retryFirst
		} else {
			wait = min(2*wait, r.cfg.ResolveEvery)
		}
		all = r.round(ctx)
	}
}

// pause keeps failing sends from asking the resolver all the time.
func (r *resolver) pause(ctx context.Context) {
	timer := time.NewTimer(min(retryFirst, r.cfg.ResolveEvery))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// round looks every name up, all at the same time, and reports whether each has
// an address. One that had an address and has none now keeps the old one.
func (r *resolver) round(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	answers := make([]netip.Addr, len(r.names))
	failures := make([]error, len(r.names))
	var wg sync.WaitGroup
	for i, name := range r.names {
		wg.Go(func() {
			answers[i], failures[i] = r.cfg.Lookup(ctx, name)
		})
	}
	wg.Wait()
	old := *r.found.Load()
	next, failed := maps.Clone(old), map[string]error{}
	for i, a := range answers {
		switch {
		case failures[i] != nil:
			failed[r.names[i]] = failures[i]
		case a.Unmap().Is4():
			next[r.names[i]] = a.Unmap()
		default:
			failed[r.names[i]] = errNoIPv4
		}
	}
	r.failed.Store(&failed)
	if !maps.Equal(old, next) {
		r.found.Store(&next)
	}
	return len(next) == len(r.names)
}

// failure returns why a name was not found in the last round; nil: it was.
func (r *resolver) failure(name string) error { return (*r.failed.Load())[name] }

// again asks for a round soon.
func (r *resolver) again() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

func (r *resolver) close() {
	r.cancel()
	<-r.done
}
