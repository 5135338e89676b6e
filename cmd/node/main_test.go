package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this test binary the program `node` that the sessions in testdata/script run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"node": main})
}

// TestSessions runs each file of testdata/script: a session at a system's shell, with its files
// and the tutorial.
func TestSessions(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			return os.CopyFS(filepath.Join(e.WorkDir, "tutorial"), os.DirFS("../../tutorial"))
		},
	})
}
