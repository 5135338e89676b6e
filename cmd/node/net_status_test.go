package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidepool-net/tidepool/internal/netctl"
)

// TestIdleNeighborsAreNotDown checks that hosts that exchange no packets are not reported as down.
func TestIdleNeighborsAreNotDown(t *testing.T) {
	t.Parallel()
	for want, n := range map[string]netctl.NodeStatus{
		"1 idle":         {Neighbors: 1},
		"0/0 up":         {},
		"2/2 up":         {Neighbors: 2, NeighborsUp: 2},
		"1/3 up, 2 idle": {Neighbors: 3, NeighborsUp: 1},
		"1/3 up, 1 down": {Neighbors: 3, NeighborsUp: 1, NeighborsDown: 1},
		"0/1 up":         {Neighbors: 1, NeighborsDown: 1},
	} {
		assert.Equal(t, want, neighborsOf(&n))
	}
}
