package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every command has a manual page, and roff formats it without a warning.
func TestManualPages(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	var out, talk bytes.Buffer
	require.Zero(t, run([]string{"man", folder}, nil, &out, &talk), talk.String())
	assert.Empty(t, out.String())
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	assert.Greater(t, len(names), 25)
	for _, name := range []string{"node.1", "node-net-up.1", "node-ctl.1", "node-shell.1"} {
		assert.FileExists(t, filepath.Join(folder, name))
	}
	text, err := os.ReadFile(filepath.Join(folder, "node-run.1"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `\fB\-c\fR, \fB\-\-command\fR \fILINE\fR`)
	text, err = os.ReadFile(filepath.Join(folder, "node-ctl.1"))
	require.NoError(t, err)
	assert.Contains(t, string(text), `(default $XDG_RUNTIME_DIR/tidepool)`)
	assert.NotContains(t, string(text), filepath.Base(os.Getenv("XDG_RUNTIME_DIR"))+"/tidepool")
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // roff is only an extra check
	}
	for _, name := range names {
		cmd := exec.Command(groff, "-man", "-ww", "-z", "-Tutf8", name)
		remarks, err := cmd.CombinedOutput()
		require.NoError(t, err, name)
		assert.Empty(t, string(remarks), name)
	}
}

// For every command, --help prints to standard output only. An unknown flag exits with status 2 and
// prints one line to standard error.
func TestEveryCommandOfTheProgram(t *testing.T) {
	count := 0
	var try func(c *cobra.Command)
	try = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			try(sub)
		}
		words := strings.Fields(c.CommandPath())[1:]
		if len(words) == 0 || words[0] == "completion" || words[0] == "help" {
			return
		}
		count++
		var out, talk bytes.Buffer
		code := run(append(slices.Clip(words), "--help"), nil, &out, &talk)
		assert.Zero(t, code, c.CommandPath())
		assert.Contains(t, out.String(), "Usage:", c.CommandPath())
		assert.Empty(t, talk.String(), c.CommandPath())
		out.Reset()
		code = run(append(slices.Clip(words), "--no-such-flag"), nil, &out, &talk)
		assert.Equal(t, 2, code, c.CommandPath())
		assert.Empty(t, out.String(), c.CommandPath())
		assert.Contains(t, talk.String(), "--no-such-flag", c.CommandPath())
		assert.Equal(t, 1, strings.Count(talk.String(), "\n"), c.CommandPath())
	}
	try(rootCommand())
	assert.Greater(t, count, 25)
}
