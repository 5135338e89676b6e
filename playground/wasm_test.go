package playground

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// TestWebAssembly checks that the WebAssembly program sends the same packets as the native one.
func TestWebAssembly(t *testing.T) {
	t.Parallel()
	program := wasm(t)
	for seed := range uint64(3) {
		input, err := json.Marshal(map[string]any{"config": lossy(seed), "inputs": transfer})
		require.NoError(t, err)
		replay := exec.CommandContext(t.Context(), "node", "test/replay.mjs", program)
		replay.Stdin, replay.Stderr = bytes.NewReader(input), os.Stderr
		answer, err := replay.Output()
		require.NoError(t, err)
		var there State
		require.NoError(t, json.Unmarshal(answer, &there))
		assert.Equal(t, run(t, lossy(seed), transfer), there)
	}
}

// TestPage runs tests of the page that need no browser.
func TestPage(t *testing.T) {
	t.Parallel()
	program := wasm(t)
	for _, name := range []string{"memory", "stuck"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), "node", "test/"+name+".mjs", program)
			text, err := c.CombinedOutput()
			require.NoError(t, err, "%s", text)
			t.Logf("%s", text)
		})
	}
}

// TestSnapshot checks that keyframes restore a world.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skip: needs node")
	}
	text, err := exec.CommandContext(t.Context(), "node", "test/snapshot.mjs").CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// wasm builds the program of the page.
func wasm(t *testing.T) string {
	t.Helper()
	ci.NeedLong(t)
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skip: needs node")
	}
	site := filepath.Join(t.TempDir(), "site")
	build := exec.CommandContext(t.Context(), "go", "run", "./build", "-root", "..", "-o", site)
	text, err := build.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return filepath.Join(site, "tidepool.wasm.br")
}

var session = flag.String("session", "", "replay the session of a `file` and print its state")

// TestSession replays a session of the page. web/test/playground.mjs compares the states.
func TestSession(t *testing.T) {
	if *session == "" {
		t.Skip("-session names the log of a session to replay")
	}
	text, err := os.ReadFile(*session)
	require.NoError(t, err)
	var s struct {
		Config

		Inputs []Input       `json:"inputs"`
		Until  time.Duration `json:"until"`
	}
	require.NoError(t, json.Unmarshal(text, &s))
	in(t, s.Config, func(t *testing.T, w *World, _ *output) {
		for i := range s.Inputs {
			require.NoError(t, w.Replay(&s.Inputs[i]))
		}
		w.Advance(s.Until)
		text, err := json.Marshal(w.State())
		require.NoError(t, err)
		t.Logf("state: %s", text)
	})
}
