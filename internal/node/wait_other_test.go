//go:build !linux

package node

import "testing"

func platformWaiters(testing.TB) map[string]waiter { return nil }
