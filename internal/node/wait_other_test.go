//go:build !linux

package node

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func platformWaiters(testing.TB) map[string]waiter { return nil }

// doorbellOf returns a waiter's doorbell.
func doorbellOf(t *testing.T, w waiter) *doorbell {
	t.Helper()
	fed, ok := w.(*feedWaiter)
	require.True(t, ok)
	return &fed.bell
}
