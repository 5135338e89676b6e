package node

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
)

// iproute runs ip(8) in the test's network namespace, whose loopback is up.
func iproute(t *testing.T) func(args ...string) string {
	t.Helper()
	inNetns(t)
	path, err := exec.LookPath("ip")
	if err != nil {
		t.Skip("skip: needs iproute2")
	}
	ip := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(path, args...).CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	ip("link", "set", "lo", "up")
	return ip
}

// pinged returns how many of three pings were answered.
func pinged(t *testing.T, n *Node, addr string) int {
	t.Helper()
	stats := testenv.Ask(t, n, control.Ping{
		Addr: netip.MustParseAddr(addr), Count: 3, Interval: 1,
	})
	return stats.Received
}

// A reload adds and removes a TUN device with the kernel's address and routes, and the users of its
// address. Other devices and their traffic are not affected.
func TestReloadAddsAndRemovesATUN(t *testing.T) {
	ip := iproute(t)
	p := freePorts(t, 3)
	const line = "interface if0 10.0.0.%d/24 127.0.0.1:%d\nneighbor 10.0.0.%d at 127.0.0.1:%d via if0\n"
	const tun0 = "interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2 routes 10.20.0.0/16 10.0.0.0/24\n"
	const tun1 = "interface tun1 10.9.0.1/24 tun:tide1 kernel 10.9.0.2\n"
	base := fmt.Sprintf(line, 1, p[0], 2, p[1])
	text := base
	a := reloadableNode(t, Config{}, "A", &text)
	textB := fmt.Sprintf(line, 2, p[1], 1, p[0]) + "route 10.8.0.0/24 via 10.0.0.1\n"
	b := reloadableNode(t, Config{}, "B", &textB)
	client, server := connect(t, b, a, "10.0.0.1:80")
	more, stop := flow(t, client, server)
	more()

	t.Log("# the device is added")
	text = base + tun0
	assert.Equal(t, []string{"forwarding", "interface tun0 10.8.0.1/24 at tun:tide0"},
		reload(t, a).Changes, "a node with a link to the kernel is a router")
	assert.Contains(t, ip("route"), "10.20.0.0/16 via 10.8.0.1 dev tide0")
	assert.Equal(t, 3, pinged(t, a, "10.8.0.2"))
	assert.Equal(t, 3, pinged(t, b, "10.8.0.2"))
	more()
	l, err := a.TCP.Listen(netip.MustParseAddrPort("10.8.0.1:90"), 0)
	require.NoError(t, err)
	kernel, err := net.Dial("tcp4", "10.8.0.1:90") // this thread is in the test's namespace
	require.NoError(t, err)
	defer kernel.Close()
	c, err := l.AcceptTCP()
	require.NoError(t, err)
	said := func() {
		t.Helper()
		_, err := kernel.Write([]byte("still open"))
		require.NoError(t, err)
		got := make([]byte, 20)
		n, err := c.Read(got)
		require.NoError(t, err)
		assert.Equal(t, "still open", string(got[:n]))
	}
	said()

	t.Log("# a second device is added, and the link gets a delay: the first device stays")
	index := ip("-o", "link", "show", "tide0")
	text = base + tun0 + tun1 + "link tun0 delay 5ms\n"
	assert.Empty(t, reload(t, a).Ended)
	assert.Equal(t, index, ip("-o", "link", "show", "tide0"))
	said()
	assert.Equal(t, 3, pinged(t, a, "10.8.0.2"))
	assert.Equal(t, 3, pinged(t, a, "10.9.0.2"))

	t.Log("# the second device is removed, and B's link moves: the first device stays")
	moved := strings.Replace(base, fmt.Sprint(p[0]), fmt.Sprint(p[2]), 1)
	text = moved + tun0
	assert.Empty(t, reload(t, a).Ended)
	textB = strings.Replace(textB, fmt.Sprint(p[0]), fmt.Sprint(p[2]), 1)
	reload(t, b)
	more()
	assert.NotContains(t, ip("link"), "tide1")
	said()
	assert.Equal(t, 3, pinged(t, a, "10.8.0.2"))

	t.Log("# the device is removed, with the sockets on its address")
	text = moved
	done, err := a.Reload(control.Reload{Try: true}, nil)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{
		fmt.Sprintf("tcp 10.8.0.1:90 to %v", kernel.LocalAddr()), "tcp 10.8.0.1:90, listening",
	}, done.Ended)
	assert.Contains(t, ip("link"), "tide0", "a dry run changes nothing")
	assert.Equal(t, done, reload(t, a))
	assert.NotContains(t, ip("link"), "tide0")
	assert.NotContains(t, ip("route"), "10.20.0.0/16")
	_, err = kernel.Read(make([]byte, 1))
	require.ErrorIs(t, err, unix.ECONNRESET, "the kernel gets a reset")
	faces := testenv.Ask(t, a, control.Interfaces{})
	require.Len(t, faces, 1)

	t.Log("# and is added again, with its number")
	text = moved + tun0
	reload(t, a)
	assert.Equal(t, 3, pinged(t, a, "10.8.0.2"))
	assert.Contains(t, ip("route"), "10.20.0.0/16 via 10.8.0.1 dev tide0")
	faces = testenv.Ask(t, a, control.Interfaces{})
	assert.Equal(t, 1, faces[1].Index)
	stop()
}

// A change that needs a restart is an error, and so is a device that cannot be opened. In both
// cases nothing changes.
func TestTUNChangesThatNeedARestart(t *testing.T) {
	ip := iproute(t)
	p := freePorts(t, 2)
	const tun0 = "interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2\n"
	base := fmt.Sprintf("interface if0 10.0.0.1/24 127.0.0.1:%d\n"+
		"neighbor 10.0.0.2 at 127.0.0.1:%d via if0\nrouting rip\n", p[0], p[1])
	text := base + tun0
	a := reloadableNode(t, Config{}, "A", &text)
	const device = "the device of tun0: was tun:tide0 kernel 10.8.0.2, is tun:"
	for tun, want := range map[string]string{
		"interface tun0 10.8.0.1/24 tun:tide7 kernel 10.8.0.2\n": device + "tide7 kernel 10.8.0.2",
		"interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.3\n": device + "tide0 kernel 10.8.0.3",
		"interface tun0 10.8.0.1/24 tun:tide0 kernel 10.8.0.2 routes 10.20.0.0/16\n": device +
			"tide0 kernel 10.8.0.2 routes 10.20.0.0/16",
		"interface tun0 10.8.0.4/24 tun:tide0 kernel 10.8.0.2\n":  "the address of tun0: was 10.8.0.1/24",
		tun0 + "link tun0 mtu 900\n":                              "the MTU of tun0: was 1400, is 900",
		"interface other 10.8.0.1/24 tun:tide0 kernel 10.8.0.2\n": "of tun:tide0: was tun0, is other",
	} {
		text = base + tun
		_, err := a.Reload(control.Reload{}, nil)
		require.ErrorIs(t, err, control.ErrUnsupported, tun)
		require.ErrorContains(t, err, want, tun)
		assert.Equal(t, 3, pinged(t, a, "10.8.0.2"), tun)
	}

	t.Log("# one new device is in use: the other new device is closed again")
	taken := start(t, Config{}, "G", "interface tun0 10.7.0.1/24 tun:tide2\n")
	text = base + tun0 + "interface tun1 10.9.0.1/24 tun:tide1 kernel 10.9.0.2\n" +
		"interface tun2 10.10.0.1/24 tun:tide2 kernel 10.10.0.2\n"
	_, err := a.Reload(control.Reload{}, nil)
	require.ErrorContains(t, err, "tide2")
	assert.NotContains(t, ip("link"), "tide1")
	assert.Equal(t, 3, pinged(t, a, "10.8.0.2"))
	require.NoError(t, taken.Close())
	assert.Empty(t, reload(t, a).Ended)
	for _, addr := range []string{"10.8.0.2", "10.9.0.2", "10.10.0.2"} {
		assert.Equal(t, 3, pinged(t, a, addr))
	}

	t.Log("# a deleted device is removed from the file, and added again")
	ip("link", "del", "tide1")
	gone := func() bool {
		_, _ = a.Do(context.Background(), control.SendTest{Addr: netip.MustParseAddr("10.9.0.2")})
		faces, err := control.Ask(context.Background(), a.Operator(), control.Interfaces{})
		return err == nil && faces[2].Problem != ""
	}
	require.Eventually(t, gone, 10*time.Second, time.Millisecond)
	with := text
	text = base + tun0
	reload(t, a)
	text = with
	reload(t, a)
	assert.Equal(t, 3, pinged(t, a, "10.9.0.2"))
	assert.Equal(t, 3, pinged(t, a, "10.8.0.2"))
}
