package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCalledAs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ arg, called, base string }{
		{"node", "node", "node"},
		{"bin/node", "bin/node", "node"},
		{"./node", "./node", "node"},
		{"tidepool", "tidepool", "tidepool"},
		{"/usr/bin/tidepool", "/usr/bin/tidepool", "tidepool"},
		{"/x/go-build123/b001/exe/node", goRun, "node"},
		{"/u/.cache/go-build/a4/a4" + strings.Repeat("0f", 31) + "-d/node", goRun, "node"},
		{"/x/go-build123/b001/node.test", "node", "node"},
		{"/my tools/node", "'/my tools/node'", "node"},
	} {
		assert.Equal(t, c.called, calledAs(c.arg), c.arg)
		assert.Equal(t, c.base, baseName(c.arg), c.arg)
	}
}

func TestNamedChangesCommandLinesAlone(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "the node runs; `bin/node net up` and 'bin/node run A.lnx', node A: gone",
		namedAs("bin/node", "the node runs; `node net up` and 'node run A.lnx', node A: gone"))
	root := rootCommand()
	for _, c := range root.Commands() {
		assert.Equal(t, "x "+c.Name(), namedAs("x", "node "+c.Name()), "it is missing in `command`")
	}
}

// An error begins with the program's name and the command's.
func TestAnErrorNamesTheCommand(t *testing.T) {
	was := os.Args[0]
	defer func() { os.Args[0] = was }()
	for _, name := range []string{"node", "bin/node", "/usr/bin/tidepool"} {
		os.Args[0] = name
		c, _, err := rootCommand().Find([]string{"lab", "run"})
		require.NoError(t, err)
		assert.Equal(t, baseName(name)+" lab run: no file\n", explain(c, errors.New("no file")))
	}
}

// A symbolic link with a name of mahimahi's stands for a command, not for the program.
func TestHintsOfAMahimahiSymlink(t *testing.T) {
	was := os.Args[0]
	defer func() { os.Args[0] = was }()
	self, err := os.Executable()
	require.NoError(t, err)
	os.Args[0] = "bin/mm-loss"
	assert.Equal(t, calledAs(self), called())
	assert.Equal(t, baseName(self), programName())
}

// Hints and help contain the name by which the user called the program.
func TestHintsUseTheProgramsName(t *testing.T) {
	program := filepath.Join(filepath.Dir(nodeProgram(t)), "tidepool")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	call := func(words ...string) (stdout, stderr string, err error) {
		var out, talk bytes.Buffer
		c := exec.CommandContext(t.Context(), program, words...)
		c.Stdout, c.Stderr = &out, &talk
		err = c.Run()
		return out.String(), talk.String(), err
	}
	_, talk, err := call("net", "exec", "ring", "routes")
	require.Error(t, err)
	assert.Contains(t, talk, "`tidepool net up FOLDER`")
	assert.True(t, strings.HasPrefix(talk, "tidepool net exec: "), talk)
	for _, words := range [][]string{{"--help"}, {"net", "up", "--help"}, {"run", "--help"}} {
		out, _, err := call(words...)
		require.NoError(t, err)
		assert.Contains(t, out, "tidepool ", words)
		assert.NotRegexp(t, "(^|[\\s`])node (net|run|attach|ctl)\\b", out, words)
	}
	_, talk, err = call("net", "up", "--bogus")
	require.Error(t, err)
	assert.Equal(t, "tidepool net up: unknown flag: --bogus (see `tidepool net up --help`)\n",
		talk)
	out, talk, err := call("run", filepath.Join("..", "..", "nets", "a-b", "A.lnx"), "-c", "help capture")
	require.NoError(t, err, talk)
	assert.Contains(t, out, "tidepool ctl A capture all")
	pages := t.TempDir()
	_, talk, err = call("man", pages)
	require.NoError(t, err, talk)
	text := fileText(t, pages, "tidepool-net-up.1")
	assert.Contains(t, text, "tidepool net up")
}
