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

// served is the set of nodes of a server. It is immutable: replace stores a new one, and running
// requests keep using the old one.
type served struct {
	names   []string // names of the nodes, sorted
	members map[string]*member
	shape   *Shape        // shape of the network; nil if unknown
	over    chan struct{} // closed when another set replaces this one
}

// member is a node of a server.
type member struct {
	name  string
	op    control.Operator
	gone  context.Context //nolint:containedctx // ends when the server removes the node
	leave context.CancelCauseFunc
}

// nodes contains a server's current nodes, and answers read-only requests.
type nodes struct {
	now       atomic.Pointer[served]
	replacing sync.Mutex // held by replace
}

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
			m.leave(fmt.Errorf("%s: %w: the node left the network", name, ErrGone))
		}
	}
	close(old.over)
}

// of returns the node in the path of a request.
func (n *nodes) of(r *http.Request) (*member, error) {
	now, name := n.now.Load(), r.PathValue("node")
	if m := now.member(name); m != nil {
		return m, nil
	}
	return nil, now.noSuch(name)
}

// member returns the node with this name; nil: no such node.
func (v *served) member(name string) *member {
	if v == nil {
		return nil
	}
	return v.members[name]
}

// noSuch returns the error for an unknown node.
func (v *served) noSuch(name string) error {
	return fmt.Errorf("%q: %w; the nodes are %s", name, errNoSuchNode, strings.Join(v.names, ", "))
}

// within returns a context that also ends when the node is removed, with the reason as its cause.
func (m *member) within(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(m.gone, func() { end(context.Cause(m.gone)) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// withTimeout returns a context for requests that a node answers at once. The context ends after a
// client's timeout. Its cause says that the node hangs.
func (m *member) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, hangs,
		fmt.Errorf("%s: %w within %v", m.name, ErrGone, hangs))
}

// gone returns the cause if a context has ended because of the node, and otherwise err.
func gone(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrGone) {
		return cause
	}
	return err
}
