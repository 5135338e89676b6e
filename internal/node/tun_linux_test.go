package node

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// inNetns moves the test into its own network namespace.
func inNetns(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
}

func TestTUNNeighborAndPingToTheKernel(t *testing.T) {
	inNetns(t)
	n := start(t, Config{}, "G", "interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2 fd08::2 "+
		"routes fd20::/16 10.20.0.0/16\naddress tun0 fd08::1/64\n")
	faces := testenv.Ask(t, n, control.Interfaces{})
	require.Len(t, faces, 1)
	assert.Equal(t, "tun:tide0", faces[0].UDP)
	assert.Equal(t, "tun+gso", faces[0].Offload)
	neighbors := testenv.Ask(t, n, control.Neighbors{})
	require.Len(t, neighbors, 2)
	for i, nb := range neighbors {
		assert.Equal(t, control.Neighbor{
			Iface: "tun0", Addr: n.cfg.Links[0].TUN.Kernel[i], UDP: "tun:tide0", Heard: -1,
		}, nb)
		stats := testenv.Ask(t, n, control.Ping{Addr: nb.Addr, Count: 3, Interval: 1})
		assert.Equal(t, 3, stats.Received)
	}
	for file, route := range map[string]string{
		"route": "tide0\t0000140A\t0100080A", "ipv6_route": "fd200000000000000000000000000000 10",
	} {
		text, err := os.ReadFile("/proc/thread-self/net/" + file)
		require.NoError(t, err)
		assert.Contains(t, string(text), route)
	}
}

// If another node has the device, Open fails and leaves nothing behind.
func TestTUNInUse(t *testing.T) {
	inNetns(t)
	const text = "interface tun0 10.8.0.1/24 tun:tide0\n"
	start(t, Config{}, "G", text)
	cfg, err := lnx.Parse("G.lnx", []byte(text))
	require.NoError(t, err)
	_, err = OpenFile(Config{}, cfg)
	require.ErrorIs(t, err, unix.EBUSY)
	_, ok := errors.AsType[*link.TUNError](err)
	assert.True(t, ok)
}

// When the device is deleted, the node announces that once, and the interface is down with the
// reason. `up` creates the device again.
func TestTUNDeviceDeleted(t *testing.T) {
	inNetns(t)
	path, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("skip: needs iproute2")
	}
	ip := func(args ...string) string {
		out, err := exec.Command(path, args...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	n := start(t, Config{}, "G",
		"interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2 routes 10.20.0.0/16\n")
	assert.Contains(t, ip("route"), "10.20.0.0/16 via 10.8.0.1 dev tide0")
	said := make(chan string, 10)
	stop := n.Watch(func(e control.Event) {
		if m, ok := e.(control.Message); ok {
			said <- m.Text
		}
	})
	defer stop()
	kernel := netip.MustParseAddr("10.8.0.2")
	problem := func() string {
		testenv.Ask(t, n, control.SendTest{Addr: kernel, Text: "up?"})
		faces := testenv.Ask(t, n, control.Interfaces{})
		return faces[0].Problem
	}
	ip("link", "set", "tide0", "down")
	require.Eventually(t, func() bool {
		return problem() == "tun:tide0 is not up; `up tun0` brings it up, with its addresses and routes"
	}, 10*time.Second, time.Millisecond)
	assert.NotContains(t, ip("route"), "10.20.0.0/16", "the kernel has removed the route")
	testenv.Ask(t, n, control.SetLink{Iface: "tun0", Up: true})
	assert.Empty(t, problem())
	assert.Contains(t, ip("route"), "10.20.0.0/16 via 10.8.0.1 dev tide0",
		"the node has added the routes again")

	ip("link", "set", "tide0", "down")
	require.Eventually(t, func() bool { return problem() != "" }, 10*time.Second, time.Millisecond)
	ip("link", "set", "tide0", "up")
	require.Eventually(t, func() bool { return problem() == "" }, 10*time.Second, time.Millisecond)

	ip("link", "del", "tide0")
	const why = "tun:tide0 was deleted; `up tun0` opens or creates it again"
	assert.Equal(t, "tun0 is down: "+why, <-said)
	faces := testenv.Ask(t, n, control.Interfaces{})
	assert.False(t, faces[0].Up)
	assert.Equal(t, why, faces[0].Problem)
	_, err = control.Ask(t.Context(), n.Operator(), control.SendTest{Addr: kernel, Text: "anybody?"})
	require.ErrorIs(t, err, control.ErrNoRoute)

	// Now a device of another kind has this name.
	ip("tuntap", "add", "dev", "tide0", "mode", "tap")
	up := control.SetLink{Iface: "tun0", Up: true}
	_, err = control.Ask(t.Context(), n.Operator(), up)
	require.ErrorIs(t, err, control.ErrInterfaceDown)
	assert.ErrorContains(t, err, "a device of another kind has that name")
	ip("link", "del", "tide0")

	// This device was created by hand.
	ip("tuntap", "add", "dev", "tide0", "mode", "tun")
	face := testenv.Ask(t, n, up)
	assert.True(t, face.Up)
	assert.Empty(t, face.Problem)
	stats := testenv.Ask(t, n, control.Ping{
		Addr: kernel, Count: 2, Interval: 1,
	})
	assert.Equal(t, 2, stats.Received)
	assert.Contains(t, ip("route"), "10.20.0.0/16 via 10.8.0.1 dev tide0")
	assert.Empty(t, said)

	// The device stays, and the routes are removed.
	require.NoError(t, n.Close())
	assert.NotContains(t, ip("route"), "10.20.0.0/16")
	assert.Contains(t, ip("link"), "tide0")
}
