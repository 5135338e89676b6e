package node

import (
	"context"
	"sync"

	"github.com/tidepool-net/tidepool/internal/control"
)

// OperatorOf returns what carries out requests. Package requests does, which this package cannot
// import: answered_test.go sets it.
var OperatorOf func(*Node) control.Operator

var operators sync.Map // by *Node

// Operator returns the node as its operator sees it.
func (n *Node) Operator() control.Operator {
	op, ok := operators.Load(n)
	if !ok {
		op, _ = operators.LoadOrStore(n, OperatorOf(n))
	}
	return op.(control.Operator)
}

// Do carries out a request.
func (n *Node) Do(ctx context.Context, req any) (any, error) { return n.Operator().Do(ctx, req) }
