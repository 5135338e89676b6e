package node

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TCP has one probe. The node's file of samples and a program share it, and each can end
// separately.
func TestProbeFileAndProgramShareTheProbe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "probe.csv")
	a, b := twoNodes(t, Config{})
	cfg := b.cfg
	cfg.Probe = file
	require.NoError(t, b.Close())
	b, err := Open(cfg)
	require.NoError(t, err)
	client, server := connect(t, b, a, "10.0.0.1:80")
	move := func() {
		_, err := client.Write(make([]byte, 100_000))
		require.NoError(t, err)
		_, err = io.ReadFull(server, make([]byte, 100_000))
		require.NoError(t, err)
	}
	move()
	var seen []Sample
	require.NoError(t, client.Probe(func(s Sample) { seen = append(seen, s) }))
	move()
	require.NoError(t, client.Probe(nil))
	require.NotEmpty(t, seen)
	n := len(seen)
	move()
	assert.Len(t, seen, n)
	require.NoError(t, b.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	rows := strings.Count(string(text), "\n") - 1
	assert.Greater(t, rows, n, "the file has more samples than the program saw")
}
