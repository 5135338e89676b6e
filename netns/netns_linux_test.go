package netns

import (
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	Main()
	os.Exit(m.Run())
}

// needNamespaces skips a test on machines that forbid namespaces or TUN devices.
func needNamespaces(t *testing.T) {
	t.Helper()
	p, err := Start(network(), Program{Args: []string{"true"}})
	if err != nil {
		t.Skip("skip: needs user namespaces and /dev/net/tun:", err)
	}
	p.Abandon()
	require.NoError(t, p.TUN().Close())
}

func network() Config {
	return Config{
		Device: "t0", MTU: 1500, Kernel: []netip.Prefix{netip.MustParsePrefix("10.9.0.2/24")},
		Gateway: []netip.Addr{netip.MustParseAddr("10.9.0.1")},
	}
}

// shell runs a script in new namespaces and returns its exit status.
func shell(t *testing.T, cfg Config, script string) int {
	t.Helper()
	needNamespaces(t)
	p, err := Start(cfg, Program{Args: []string{"sh", "-c", script}})
	require.NoError(t, err)
	defer p.TUN().Close()
	require.NoError(t, p.Run())
	status, _ := errors.AsType[StatusError](p.Wait(Left{})) // 0 if the program succeeded
	return int(status)
}

func TestStatus(t *testing.T) {
	for script, want := range map[string]int{
		"exit 0": 0, "exit 7": 7, "kill -9 $$": 128 + 9, "kill -TERM $$": 128 + 15,
	} {
		assert.Equal(t, want, shell(t, network(), script), script)
	}
}

// A signal that arrives between Run and Wait ends the program, not this process.
func TestSignalBeforeWait(t *testing.T) {
	needNamespaces(t)
	p, err := Start(network(), Program{Args: []string{"sleep", "1000"}})
	require.NoError(t, err)
	defer p.TUN().Close()
	require.NoError(t, p.Run())
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGTERM))
	assert.Equal(t, StatusError(128+15), p.Wait(Left{}))
}

// TestQuitAfterWait checks that a SIGQUIT that ends the program first does not end this process.
func TestQuitAfterWait(t *testing.T) {
	needNamespaces(t)
	p, err := Start(network(), Program{Args: []string{"sh", "-c", "kill -QUIT $$"}})
	require.NoError(t, err)
	defer p.TUN().Close()
	require.NoError(t, p.Run())
	assert.Equal(t, StatusError(128+3), p.Wait(Left{}))
	require.NoError(t, unix.Kill(os.Getpid(), unix.SIGQUIT)) // stays caught: it may arrive late
}

// The program has the addresses, the default route and the files of the configuration. The
// machine's own do not change.
func TestProgramSeesTheNetwork(t *testing.T) {
	cfg := network()
	cfg.Files = map[string]string{"/etc/hosts": "10.9.0.1 gateway-of-test\n"}
	cfg.Ports = [2]uint16{20000, 20100}
	for _, script := range []string{
		"grep -q gateway-of-test /etc/hosts",
		"grep -q t0 /proc/net/dev && ! grep -q eth /proc/net/dev",
		"grep -q '^t0.00000000.0100090A' /proc/net/route",
		"test \"$(cat /proc/sys/net/ipv4/ip_local_port_range)\" = \"20000	20100\"",
		"test \"$(cat /proc/sys/net/ipv4/ip_unprivileged_port_start)\" = 0",
		"test -w /tmp",
	} {
		assert.Equal(t, 0, shell(t, cfg, script), script)
	}
	hosts, err := os.ReadFile("/etc/hosts")
	require.NoError(t, err)
	assert.NotContains(t, string(hosts), "gateway-of-test")
}

func TestProgramThatCannotRun(t *testing.T) {
	needNamespaces(t)
	folder := t.TempDir()
	file := folder + "/file"
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o644))
	for name, status := range map[string]int{"no-such-program": 127, file: 126, folder: 126} {
		p, err := Start(network(), Program{Args: []string{name}})
		require.NoError(t, err)
		err = p.Run()
		var e *ExecError
		require.ErrorAs(t, err, &e, name)
		assert.Equal(t, status, e.Status(), "%s: %v", name, err)
		require.NoError(t, p.TUN().Close())
	}
}

// The error for a forbidden namespace has the command that permits it.
func TestAdvice(t *testing.T) {
	defer func(was func(string) string) { setting = was }(setting)
	for _, c := range []struct{ path, value, want string }{
		{debianSetting, "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{countSetting, "0", "sysctl -w user.max_user_namespaces="},
		{appArmorSetting, "1", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"", "", "--security-opt seccomp=unconfined"},
	} {
		setting = func(path string) string {
			if path == c.path {
				return c.value
			}
			return ""
		}
		assert.ErrorContains(t, forkError(unix.EPERM), c.want)
	}
	assert.ErrorContains(t, forkError(unix.ENOSPC), "user.max_net_namespaces")
	assert.ErrorContains(t, forkError(unix.EINVAL), "CONFIG_USER_NS")
}
