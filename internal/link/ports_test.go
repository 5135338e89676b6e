package link_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/link"
)

func TestFreePortsAreFreeAndDiffer(t *testing.T) {
	ports, err := link.FreePorts(4)
	require.NoError(t, err)
	require.Len(t, ports, 4)
	seen := map[int]bool{}
	for _, p := range ports {
		assert.False(t, seen[p], "port %d twice", p)
		seen[p] = true
	}
}
