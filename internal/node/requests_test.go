package node

import (
	"context"
	"sync"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// OperatorOf returns the node's handler of requests, which is in package operator. This package
// cannot import operator, so answered_test.go sets the variable.
var OperatorOf func(*Node) control.Operator

// Change is portforward.Change.
type Change = struct {
	Text  string
	Do    func() error
	Undo  func()
	Frees bool
}

// more lists the changes of services.
type more = func(was, now *lnx.Config) []Change

// Reloader is a *operator.Reloader.
type Reloader interface {
	Do(r control.Reload) (control.Reloaded, error)
	TakeBack()
}

// ReloaderOf returns the Reloader of a node. answered_test.go sets it, too.
var ReloaderOf func(*Node, *lnx.Config, func() (*lnx.Config, error), more) Reloader

// OpenFile is operator.OpenNode. answered_test.go sets it, too.
var OpenFile func(Config, *lnx.Config) (*Node, error)

var operators, reloaders, moreOf sync.Map // keys are *Node

// reloadable gives a node the Reloader of its file.
func (n *Node) reloadable(file *lnx.Config, reread func() (*lnx.Config, error)) {
	reloaders.Store(n, ReloaderOf(n, file, reread, func(was, now *lnx.Config) []Change {
		if f, ok := moreOf.Load(n); ok {
			return f.(more)(was, now)
		}
		return nil
	}))
}

func reloaderOf(n *Node) Reloader {
	r, _ := reloaders.Load(n)
	return r.(Reloader)
}

// Reload reads the node's file again.
func (n *Node) Reload(r control.Reload, f more) (control.Reloaded, error) {
	if f != nil {
		moreOf.Store(n, f)
		defer moreOf.Delete(n)
	}
	return reloaderOf(n).Do(r)
}

// Operator returns the node as a control.Operator.
func (n *Node) Operator() control.Operator {
	op, ok := operators.Load(n)
	if !ok {
		op, _ = operators.LoadOrStore(n, OperatorOf(n))
	}
	return op.(control.Operator)
}

// Do handles a request.
func (n *Node) Do(ctx context.Context, req any) (any, error) { return n.Operator().Do(ctx, req) }

// Watch completes control.Operator.
func (n *Node) Watch(f func(control.Event)) (stop func()) { return n.Watchers.Watch(f) }
