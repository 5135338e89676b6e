// Package control is the one vocabulary in which an operator speaks to a node: what may be asked,
// what is answered, and what a node tells unasked. The shell, the HTTP API and the page are
// renderings of it; the node is its only implementation.
//
// A request is a small struct and its answer is a snapshot: plain values with json tags that stay
// true whatever the node does next. Each request says which answer belongs to it by its answers
// method, so that Ask is typed although the wire between operator and node (Do) is not; Kinds lists
// them all.
//
// Units: a time.Duration's json name ends in _ns, bytes and packets are counted whole.
package control

import (
	"context"
	"fmt"
)

// Operator is a node as its operator sees it.
type Operator interface {
	// Do carries out one request of this package and returns the answer that its documentation
	// names. It may be called from several goroutines at once. Requests that wait (Connect, Write,
	// Read, Ping, Traceroute, Perf, Echo, SendFile, RecvFile, Fetch) end early with the context's
	// error when ctx is done; whatever they had opened is then closed. An error is one of this
	// package's sentinels, wrapped, or the operating system's own.
	Do(ctx context.Context, req any) (any, error)
	// Watch has f called with every event from now on until stop is called. Calls to one f never
	// overlap and come in the order of the events, from a goroutine that is not the one that moves
	// packets: f may write to a terminal, but it must not call Do.
	Watch(f func(Event)) (stop func())
}

// Request is a request whose answer is an A.
type Request[A any] interface{ answers(A) }

// Nothing is the answer of a request that has only success or failure.
type Nothing struct{}

// Ask is Do with the type of the answer that belongs to the request.
func Ask[A any](ctx context.Context, op Operator, req Request[A]) (A, error) {
	var none A
	answer, err := op.Do(ctx, req)
	if err != nil {
		return none, err
	}
	a, ok := answer.(A)
	if !ok {
		panic(fmt.Sprintf("BUG: control: %T was answered with %T, want %T", req, answer, none))
	}
	return a, nil
}

// Order is Ask for a request whose only answer is success.
func Order(ctx context.Context, op Operator, req Request[Nothing]) error {
	_, err := Ask(ctx, op, req)
	return err
}
