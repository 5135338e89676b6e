//go:build linux

package interop_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/link"
)

// outside returns a program that runs in the test's namespace, not in the bed's.
func (b *bed) outside(limit time.Duration, name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	b.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as in commandFor
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}

// nginxHere serves the test's files on a port of the test's own loopback.
func (b *bed) nginxHere() string {
	b.t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(b.t, err)
	addr := l.Addr().String()
	require.NoError(b.t, l.Close())
	conf := b.path("nginx.conf")
	text := fmt.Sprintf(nginxConf, b.dir, addr)
	require.NoError(b.t, os.WriteFile(conf, []byte(text), 0o644))
	b.start(b.outside(patience, "nginx", "-p", b.dir, "-c", conf, "-e", "stderr",
		"-g", "daemon off;"))
	require.Eventually(b.t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	return addr
}

// TestCurlThroughPortForwards: curl on this machine loads a page of nginx on this machine, through
// two port forwards and two routers, one of them lossy. Eight downloads run at once.
func TestCurlThroughPortForwards(t *testing.T) { both(t, testCurlThroughPortForwards) }

func testCurlThroughPortForwards(t *testing.T, f family) {
	need(t, "curl", "nginx")
	r := &row{peer: "Linux, curl and nginx", scenario: "publish and expose", loss: 2}
	f.report(t, r)
	b := newRow(t, f, "")
	b.setLoss(2)
	r.bytes = size(5)
	path, want := b.randomFile("file", r.bytes)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "page"), []byte("a page\n"), 0o644))
	_, err := b.c.Forwards.Expose(control.Expose{Port: 80, To: b.nginxHere()})
	require.NoError(t, err)
	forward, err := b.a.Forwards.Publish(control.Publish{To: f.at(hostIP, 80)})
	require.NoError(t, err)
	url := "http://" + forward.Addr().String() + "/"
	curl := []string{"--silent", "--show-error", "--fail"}
	assert.Equal(t, "a page\n", b.must(b.outside(patience, "curl",
		append(curl, url+"page")...)))
	start := time.Now()
	var downloads []*exec.Cmd
	for i := range 8 {
		c := b.outside(transferTime(8*r.bytes), "curl",
			append(curl, "-o", b.path(fmt.Sprint("got", i)), url+filepath.Base(path))...)
		require.NoError(t, c.Start())
		downloads = append(downloads, c)
	}
	for i, c := range downloads {
		require.NoError(t, c.Wait())
		assert.Equal(t, want, sumOf(t, b.path(fmt.Sprint("got", i))))
	}
	r.bytes *= 8
	r.took = time.Since(start)
	assert.Zero(t, forward.State().Failed, forward.State().Problem)
}

// TestSpliceForwardsEveryPort: behind a TUN device, every port of the node's address is forwarded
// to this machine. A port that is closed here is refused there.
func TestSpliceForwardsEveryPort(t *testing.T) { both(t, testSpliceForwardsEveryPort) }

func testSpliceForwardsEveryPort(t *testing.T, f family) {
	need(t, "curl", "nginx")
	r := &row{peer: "Linux, curl and nginx", scenario: "splice"}
	f.report(t, r)
	b := newRow(t, f, "")
	r.bytes = size(0)
	path, want := b.randomFile("file", r.bytes)
	here := netip.MustParseAddrPort(b.nginxHere())
	_, err := b.a.Forwards.Splice(control.Splice{Addr: f.addr(gatewayIP)})
	require.NoError(t, err)
	start := time.Now()
	b.must(b.commandFor(transferTime(r.bytes), "curl", "--silent", "--show-error", "--fail", "-o",
		b.path("got"), "http://"+f.colon(gatewayIP, int(here.Port()))+"/"+filepath.Base(path)))
	r.took = time.Since(start)
	assert.Equal(t, want, sumOf(t, b.path("got")))
	ports, err := link.FreePorts(1)
	require.NoError(t, err)
	c := b.command("curl", "--silent", "http://"+f.colon(gatewayIP, ports[0])+"/")
	require.Error(t, c.Run())
	assert.Equal(t, 7, c.ProcessState.ExitCode(), "curl: failed to connect to host")
}
