//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Flags that select nothing to measure are rejected before anything is built or started.
func TestWrongCommandLines(t *testing.T) {
	for _, args := range [][]string{
		{"quick", "-only", "nonsense"},
		{"quick", "extra"},
		{"quick", "-rounds", "0"},
		{"quick", "-for", "0s"},
		{"quick", "-nonsense"},
		{"all", "-only", "nonsense"},
		{"conns", "-count", "-5"},
		{"profile", "extra"},
	} {
		var wrong misuse
		require.ErrorAs(t, run(t.Context(), args[0], args[1:]), &wrong, "%v", args)
	}
	s := &session{only: "loss2-bbr", span: 1}
	s.turns.Rounds = 1
	require.NoError(t, s.check())
	s.only = "idle"
	assert.ErrorContains(t, s.check(), "clean gvisor-tuned", "quick has no such case")
	s.whole = true
	assert.NoError(t, s.check())
}
