package link

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProbeLeavesNothing checks that the probe leaves no socket or device behind, and that its
// result agrees with that of real sockets.
func TestProbeLeavesNothing(t *testing.T) {
	before, err := net.Interfaces()
	require.NoError(t, err)
	f := Probe()
	assert.Equal(t, f.TUN, f.TUNProblem == "", f.TUNProblem)
	after, err := net.Interfaces()
	require.NoError(t, err)
	assert.Len(t, after, len(before))
	d, err := Open(Config{
		Host: "127.0.0.1", Port: freePort(t), Offload: OffloadGSO,
		Interfaces: []Interface{{Name: "if0"}},
	})
	assert.Equal(t, f.GSO, err == nil, "%v", err)
	if err == nil {
		require.NoError(t, d.Close())
	}
}

func freePort(t *testing.T) uint16 {
	t.Helper()
	ports, err := FreePorts(1)
	require.NoError(t, err)
	return uint16(ports[0])
}
