//go:build unix

package observe_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/files"
	"github.com/tidepool-net/tidepool/internal/node"
	"github.com/tidepool-net/tidepool/internal/operator/operatortest"
)

// TestCaptureIntoPipeOrDeviceFails checks that a request that names a pipe or a device fails at
// once, and leaves no capture behind.
func TestCaptureIntoPipeOrDeviceFails(t *testing.T) {
	a, _ := operatortest.Two(t, node.Config{})
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, name := range []string{pipe, "/dev/null"} {
		for _, req := range []any{
			control.Record{File: name, Overwrite: true},
			control.StartCapture{File: name, Overwrite: true},
			control.PcapStart{File: name, Overwrite: true},
			control.Record{File: name},
			control.StartCapture{File: name},
			control.PcapStart{File: name},
		} {
			_, err := a.Do(t.Context(), req)
			require.ErrorIs(t, err, files.ErrNotRegular, "%T %s", req, name)
		}
	}
	list := testenv.Ask(t, a, control.Captures{})
	assert.Empty(t, list)
}
