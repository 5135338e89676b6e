package tidepool_test

import (
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool"
)

// The kernel of this machine is a neighbor. test/interop runs the suites on it.
func TestTheKernelDialsANode(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread and its namespace end with the test
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
	n := open(t, tidepool.Config{Interfaces: []tidepool.Interface{{
		Addr: prefix("10.8.0.1/24"), TUN: "tide0", Kernel: addr("10.8.0.2"),
	}}})
	l, err := n.Listen("tcp", ":80")
	require.NoError(t, err)
	kernels, err := net.DialTimeout("tcp4", "10.8.0.1:80", patience)
	require.NoError(t, err)
	defer kernels.Close()
	ours, err := l.Accept()
	require.NoError(t, err)
	defer ours.Close()
	_, err = kernels.Write([]byte("from the kernel"))
	require.NoError(t, err)
	require.NoError(t, ours.SetDeadline(time.Now().Add(patience)))
	p := make([]byte, 100)
	k, err := ours.Read(p)
	require.NoError(t, err)
	assert.Equal(t, "from the kernel", string(p[:k]))
}
