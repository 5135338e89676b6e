package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidepool-net/tidepool/internal/control"
)

// served is what a server speaks for at a time. It does not change: another takes its place, and
// who has begun with one goes on with it.
type served struct {
	names   []string // sorted
	members map[string]*member
	shape   *Shape        // nil: nobody knows
	over    chan struct{} // closed when another is in its place
}

// member is a node that a server speaks for.
type member struct {
	name  string
	op    control.Operator
	gone  context.Context //nolint:containedctx // ends when the server speaks for it no more
	leave context.CancelCauseFunc
}

// nodes holds the nodes that a server speaks for, and answers requests that only read.
type nodes struct {
	now       atomic.Pointer[served]
	replacing sync.Mutex // held during replace
}

// replace puts other nodes in their place.
func (n *nodes) replace(nodes map[string]control.Operator, shape *Shape) {
	n.replacing.Lock()
	defer n.replacing.Unlock()
	old := n.now.Load()
	next := &served{
		names: slices.Sorted(maps.Keys(nodes)), members: map[string]*member{}, shape: shape,
		over: make(chan struct{}),
	}
	for name, op := range nodes {
		if m := old.member(name); m != nil && m.op == op {
			next.members[name] = m
			continue
		}
		m := &member{name: name, op: op}
		m.gone, m.leave = context.WithCancelCause(context.Background())
		next.members[name] = m
	}
	n.now.Store(next)
	if old == nil {
		return
	}
	for name, m := range old.members {
		if next.members[name] != m {
			m.leave(fmt.Errorf("%s: %w: it left the network", name, ErrGone))
		}
	}
	close(old.over)
}

// of returns the node that a request's path names.
func (n *nodes) of(r *http.Request) (*member, error) {
	now, name := n.now.Load(), r.PathValue("node")
	if m := now.member(name); m != nil {
		return m, nil
	}
	return nil, now.noSuch(name)
}

// member is the node of that name; nil: there is none.
func (v *served) member(name string) *member {
	if v == nil {
		return nil
	}
	return v.members[name]
}

// noSuch is the error about a node that is not there.
func (v *served) noSuch(name string) error {
	return fmt.Errorf("%q: %w; the nodes are %s", name, errNoSuchNode, strings.Join(v.names, ", "))
}

// within is ctx that ends, with the reason as its cause, when the node is gone.
func (m *member) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(m.gone, func() { end(context.Cause(m.gone)) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// soon is ctx for what a node answers at once: one that is silent for so long as a client may be
// hangs, and the context's cause says so.
func (m *member) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, hangs,
		fmt.Errorf("%s: %w within %v", m.name, ErrGone, hangs))
}

// gone is why a context of within or soon has ended, if that is because the node is gone; else err.
func gone(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrGone) {
		return cause
	}
	return err
}
