//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
	"github.com/tidepool-net/tidepool/internal/files"
)

// TestPipesAreNotOpened checks that no command that reads a file blocks on a named pipe.
func TestPipesAreNotOpened(t *testing.T) {
	ports := testenv.FreePorts(t, 1)
	t.Chdir(t.TempDir())
	node := fmt.Appendf(nil, "interface if0 10.0.0.1/24 127.0.0.1:%d\n", ports[0])
	require.NoError(t, os.WriteFile("node.lnx", node, 0o600))
	require.NoError(t, os.MkdirAll("network", 0o700))
	require.NoError(t, os.MkdirAll("state/net", 0o700))
	require.NoError(t, os.MkdirAll("results", 0o700))
	for _, name := range []string{
		"pipe", "pipe.lnx", "pipe.net", "pipe.yaml", "network/A.lnx", "state/net/network.json",
		"results/run.json", "results/experiment.yaml",
	} {
		require.NoError(t, syscall.Mkfifo(name, 0o600))
	}
	for _, args := range [][]string{
		{"validate", "pipe"},
		{"validate", "network"},
		{"validate", "pipe.net"},
		{"run", "pipe"},
		{"pipe.lnx"},
		{"run", "--script", "pipe", "node.lnx"},
		{"run", "-c", "source pipe", "node.lnx"},
		{"run", "-c", "li pipe", "node.lnx"},
		{"trace", "pipe"},
		{"net", "graph", "pipe"},
		{"net", "graph", "network"},
		{"net", "generate", "pipe.net"},
		{"net", "up", "pipe"},
		{"net", "up", "pipe.net"},
		{"net", "status", "--state", "state"},
		{"ctl", "--state", "state", "A", "li"},
		{"lab", "run", "pipe.yaml"},
		{"lab", "judge", "pipe.yaml"},
		{"lab", "check", "pipe.yaml"},
		{"lab", "log", "pipe"},
		{"lab", "trace", "info", "pipe"},
		{"lab", "run", "results"},
		{"lab", "plot", "results"},
		{"lab", "compare", "results", "results"},
	} {
		var out bytes.Buffer
		status := run(args, strings.NewReader(""), &out, &out)
		assert.NotZero(t, status, args)
		assert.Contains(t, out.String(), "not a regular file: it is a pipe", args)
	}
}

// TestFilesThatAreTooLarge checks that such files are not read into memory.
func TestFilesThatAreTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.lnx")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, files.MaxText+1))
	for _, args := range [][]string{
		{"validate", path}, {"run", path}, {"net", "graph", path}, {"lab", "run", path},
	} {
		var out bytes.Buffer
		assert.Equal(t, 2, run(args, strings.NewReader(""), &out, &out), args)
		assert.Contains(t, out.String(), "large.lnx has more than 16777216 bytes", args)
	}
}

// TestPipesOfTheShell checks that a pipe that the shell passes as <(COMMAND) is read.
func TestPipesOfTheShell(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	_, err = w.WriteString("interface if0 10.0.0.1/24 127.0.0.1:5000\n")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	var out bytes.Buffer
	args := []string{"validate", fmt.Sprintf("/dev/fd/%d", r.Fd())}
	assert.Zero(t, run(args, strings.NewReader(""), &out, &out))
	assert.Contains(t, out.String(), "1 file, 0 errors")
}
