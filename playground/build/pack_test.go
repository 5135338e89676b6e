package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPack checks that the page unpacks the output of pack in chunks of any size, and reports a
// truncated program.
func TestPack(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skip: needs node")
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in each run
	want := make([]byte, 1<<18)
	for i := range want {
		want[i] = byte(random.IntN(i>>14 + 1))
	}
	want = append(want, make([]byte, 3<<20)...)
	packed, err := pack(want)
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), "program.wasm.br")
	unpack := func(packed []byte, piece int) ([]byte, error) {
		require.NoError(t, os.WriteFile(name, packed, 0o600))
		return exec.CommandContext(t.Context(), "node", "../test/unpack.mjs", name,
			strconv.Itoa(piece)).Output()
	}
	for _, piece := range []int{777, 1 << 16} {
		restored, err := unpack(packed, piece)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want, restored), "in pieces of %d bytes", piece)
	}
	_, err = unpack(packed[:len(packed)-10], 1<<16)
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed)
	assert.Contains(t, string(failed.Stderr), "The program is incomplete.")
}

// TestVisit checks that the build refuses a site of more than 4 MB, not counting files that are
// loaded on demand.
func TestVisit(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	file := func(name string, size int) {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), make([]byte, size), 0o600))
	}
	file("tidepool.wasm.br", maxVisit-1000)
	file(laboratory, maxVisit)
	file("page.js", 100_000) // a hundredth when compressed
	require.NoError(t, checkVisit(out))
	file("tidepool.wasm.br", maxVisit)
	require.ErrorContains(t, checkVisit(out), "the limit is 4000000")
}
