package tidepool_test

import (
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool"
)

// The kernel of this machine is a neighbor. test/interop runs more tests with it.
func TestKernelDialsNode(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("skip: needs root")
	}
	for _, row := range []struct{ own, kernel, routed, file, line string }{
		{"10.8.0.1/24", "10.8.0.2", "10.20.0.0/16", "route", "tide0\t0000140A\t0100080A"},
		{
			"2001:db8:8::1/64", "2001:db8:8::2", "2001:db8:20::/48", "ipv6_route",
			"20010db8002000000000000000000000 30 00000000000000000000000000000000 00 20010db8000800000000000000000001",
		},
	} {
		t.Run(row.own, func(t *testing.T) {
			runtime.LockOSThread() // never unlocked: the thread and its namespace end with the test
			require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
			n := open(t, tidepool.Config{Interfaces: []tidepool.Interface{{
				Addr: prefix(row.own), TUN: "tide0", Kernel: addr(row.kernel),
				KernelRoutes: []netip.Prefix{prefix(row.routed)},
			}}})
			routes, err := os.ReadFile("/proc/thread-self/net/" + row.file)
			require.NoError(t, err)
			assert.Contains(t, string(routes), row.line, "%s by the node", row.routed)
			l, err := n.Listen("tcp", ":80")
			require.NoError(t, err)
			at := netip.AddrPortFrom(prefix(row.own).Addr(), 80).String()
			kernels, err := net.DialTimeout("tcp", at, patience)
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
		})
	}
}

func TestKernelRoutesNeedAKernelAddress(t *testing.T) {
	for name, f := range map[string]tidepool.Interface{
		"no address": {TUN: "tide0", KernelRoutes: []netip.Prefix{prefix("10.20.0.0/16")}},
		"host bits": {
			TUN: "tide0", Kernel: addr("10.8.0.2"),
			KernelRoutes: []netip.Prefix{prefix("10.20.0.1/16")},
		},
		"no device": {UDP: "127.0.0.1:0", KernelRoutes: []netip.Prefix{prefix("10.20.0.0/16")}},
	} {
		f.Addr = prefix("10.8.0.1/24")
		_, err := tidepool.Open(tidepool.Config{Interfaces: []tidepool.Interface{f}})
		assert.Error(t, err, name)
	}
}
