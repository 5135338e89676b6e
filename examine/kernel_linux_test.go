package examine_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/examine"
	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// inside marks the process that runs in its own network namespace.
const inside = "EXAMINE_TEST_NAMESPACE"

// The kernel passes all checks whose features it claims.
func TestKernel(t *testing.T) {
	testenv.NeedLong(t)
	if os.Getenv(inside) == "" {
		self, err := os.Executable()
		require.NoError(t, err)
		c := exec.CommandContext(t.Context(), self, "-test.run=^TestKernel$", "-test.v")
		c.Env = append(os.Environ(), inside+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := c.CombinedOutput()
		if err != nil && len(out) == 0 {
			t.Skip("skip: needs user namespaces")
		}
		t.Logf("%s", out)
		require.NoError(t, err)
		return
	}
	subject, err := examine.Kernel()
	if err != nil {
		t.Skipf("skip: needs TUN devices: %v", err)
	}
	examined(t, subject, 16)
}
