//go:build !linux

package node

func newWaiter(waiterKind) (waiter, error) { return newFeedWaiter(), nil }
