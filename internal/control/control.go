// Package control defines the requests to a node, their answers, and the node's events. The shell,
// the HTTP API and the page use it. A node executes the requests; the client of the HTTP API passes
// them on to one.
//
// A request is a small struct. Its answer is a snapshot: plain values with JSON tags, which do not
// change later. A request embeds Answer, which names its answer's type, so Ask is typed although Do
// is not. Kinds lists all requests.
//
// Units: the JSON name of a time.Duration ends in _ns. Bytes and packets are whole numbers.
package control

import (
	"context"
	"fmt"
)

// Operator is a node as its operator's programs use it.
type Operator interface {
	// Do executes a request of this package and returns its answer, of the type that the request
	// embeds in an Answer. Several goroutines may call it. Requests that wait (Connect, Write,
	// Read, Ping, Traceroute, Perf, Echo, SendFile, RecvFile, Fetch) end with the context's error
	// when ctx is done, and close what they have opened. An error is one of this package's
	// sentinels, wrapped, or the operating system's.
	Do(ctx context.Context, req any) (any, error)
	// Watch calls f with every event from now on until stop is called. Calls of one f are in the
	// order of the events and never concurrent. They come from a goroutine that does not process
	// packets, so f may write to a terminal, but it must not call Do.
	Watch(f func(Event)) (stop func())
}

// Request is a request whose answer is an A.
type Request[A any] interface{ answers(A) }

// Answer turns a struct that embeds it into a request whose answer is an A.
type Answer[A any] struct{}

func (Answer[A]) answers(A) {}

// Nothing is the answer of a request that only succeeds or fails.
type Nothing struct{}

// Ask is like Do, with the request's type of answer.
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

// Order is like Ask, for a request that only succeeds or fails.
func Order(ctx context.Context, op Operator, req Request[Nothing]) error {
	_, err := Ask(ctx, op, req)
	return err
}
