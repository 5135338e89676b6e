package control

import (
	"context"
	"fmt"
	"reflect"
)

// Handlers maps the types of requests to their handlers.
type Handlers map[reflect.Type]func(ctx context.Context, req any) (any, error)

// Handle adds the handler of a kind of request.
func Handle[R Request[A], A any](h Handlers, f func(ctx context.Context, r R) (A, error)) {
	kind := reflect.TypeFor[R]()
	if h[kind] != nil {
		panic(fmt.Sprintf("BUG: control: two handlers of %v", kind))
	}
	h[kind] = func(ctx context.Context, req any) (any, error) { return f(ctx, req.(R)) }
}

// HandleOrder is like Handle, for a request that only succeeds or fails.
func HandleOrder[R Request[Nothing]](h Handlers, f func(ctx context.Context, r R) error) {
	Handle(h, func(ctx context.Context, r R) (Nothing, error) { return Nothing{}, f(ctx, r) })
}

// Do implements Operator.
func (h Handlers) Do(ctx context.Context, req any) (any, error) {
	f := h[reflect.TypeOf(req)]
	if f == nil {
		return nil, fmt.Errorf("request %T: %w", req, ErrUnsupported)
	}
	return f(ctx, req)
}
