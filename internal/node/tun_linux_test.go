package node

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// aloneWithTheKernel moves the test into a network namespace of its own.
func aloneWithTheKernel(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
}

func TestANodeShowsItsTUNAndPingsTheKernel(t *testing.T) {
	aloneWithTheKernel(t)
	n := start(t, Config{}, "G", "interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2\n")
	faces, err := control.Ask(t.Context(), n.Operator(), control.Interfaces{})
	require.NoError(t, err)
	require.Len(t, faces, 1)
	assert.Equal(t, "tun:tide0", faces[0].UDP)
	assert.Equal(t, "tun+gso", faces[0].Offload)
	neighbors, err := control.Ask(t.Context(), n.Operator(), control.Neighbors{})
	require.NoError(t, err)
	require.Len(t, neighbors, 1)
	assert.Equal(t, control.Neighbor{
		Iface: "tun0", Addr: n.cfg.LNX.Interfaces[0].Tun.Kernel, UDP: "tun:tide0",
	}, neighbors[0])

	stats, err := control.Ask(t.Context(), n.Operator(), control.Ping{
		Addr: neighbors[0].Addr, Count: 3, Interval: 1,
	})
	require.NoError(t, err)
	assert.Equal(t, 3, stats.Received)
}

// Another node has the device: Open says so, and leaves nothing behind.
func TestATUNThatIsTaken(t *testing.T) {
	aloneWithTheKernel(t)
	const text = "interface tun0 10.8.0.1/24 tun:tide0\n"
	start(t, Config{}, "G", text)
	cfg, err := lnx.Parse("G.lnx", []byte(text))
	require.NoError(t, err)
	_, err = Open(Config{LNX: cfg})
	require.ErrorIs(t, err, unix.EBUSY)
	_, ok := errors.AsType[*link.TUNError](err)
	assert.True(t, ok)
}

// Somebody deletes the device: the operator is told once, and what is sent there
// is counted.
func TestATUNThatIsTakenAway(t *testing.T) {
	aloneWithTheKernel(t)
	path, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("skip: needs iproute2")
	}
	n := start(t, Config{}, "G", "interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2\n")
	said := make(chan string, 10)
	stop := n.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	})
	defer stop()
	out, err := exec.Command(path, "link", "del", "tide0").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, "node: link: interface tun0: tun:tide0: the device was deleted", <-said)
	_, err = control.Ask(t.Context(), n.Operator(), control.SendTest{
		Addr: netip.MustParseAddr("10.8.0.2"), Text: "anybody?",
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // the packet leaves after the answer
		faces, err := control.Ask(t.Context(), n.Operator(), control.Interfaces{})
		require.NoError(t, err)
		return slices.Equal(faces[0].Out.Drops,
			[]control.Drop{{Reason: "tun device deleted", Packets: 1}})
	}, 10*time.Second, time.Millisecond)
	assert.Empty(t, said)
}
