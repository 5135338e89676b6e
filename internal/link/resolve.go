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
	// lookupPatience limits one round of lookups.
	lookupPatience = 5 * time.Second
	// openPatience is how long opening waits for the first round.
	openPatience = time.Second
	// retryFirst is the time until a failed lookup is repeated. It doubles up to ResolveEvery.
	retryFirst = 250 * time.Millisecond
)

// resolver looks up names in a goroutine and publishes the results in an immutable map.
type resolver struct {
	names  []string
	cfg    Config
	found  atomic.Pointer[map[string]netip.Addr]
	failed atomic.Pointer[map[string]error] // errors of the last round
	kick   chan struct{}                    // signals that an address may have changed
	cancel context.CancelFunc
	done   chan struct{}
}

// newResolver starts a resolver and waits for its first round, up to openPatience.
func newResolver(cfg Config, names []string) *resolver {
	first := make(chan struct{})
	r := startResolver(cfg, names, &map[string]netip.Addr{}, first)
	select {
	case <-first:
	case <-time.After(openPatience):
	}
	return r
}

// startResolver starts a resolver that already knows the addresses in found. The resolver closes
// first after its first round.
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
		select {
		case <-ctx.Done():
		case <-time.After(min(wait, r.cfg.ResolveEvery)):
		case <-r.kick:
			r.pause(ctx)
		}
		if all {
			wait = retryFirst
		} else {
			wait = min(2*wait, r.cfg.ResolveEvery)
		}
		all = r.round(ctx)
	}
}

// pause limits the rate of lookups after failed sends.
func (r *resolver) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(min(retryFirst, r.cfg.ResolveEvery)):
	}
}

// round looks up all names concurrently, and reports whether each has an address. A name whose
// lookup fails keeps its old address.
func (r *resolver) round(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	answers := make([]netip.Addr, len(r.names))
	failures := make([]error, len(r.names))
	var wg sync.WaitGroup
	for i, name := range r.names {
		wg.Go(func() {
			answers[i], failures[i] = r.cfg.Lookup(ctx, r.cfg.network, name)
		})
	}
	wg.Wait()
	old := *r.found.Load()
	next, failed := maps.Clone(old), map[string]error{}
	for i, a := range answers {
		switch {
		case failures[i] != nil:
			failed[r.names[i]] = failures[i]
		case fits(r.cfg.network, a.Unmap()):
			next[r.names[i]] = a.Unmap()
		default:
			failed[r.names[i]] = familyError(r.cfg.network)
		}
	}
	r.failed.Store(&failed)
	if !maps.Equal(old, next) {
		r.found.Store(&next)
	}
	return len(next) == len(r.names)
}

// failure returns why the last lookup of a name failed; nil: it succeeded.
func (r *resolver) failure(name string) error { return (*r.failed.Load())[name] }

// refresh requests another round of lookups.
func (r *resolver) refresh() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

func (r *resolver) close() {
	r.cancel()
	<-r.done
}
