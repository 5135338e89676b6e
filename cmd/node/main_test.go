package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	ci "github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// TestMain lets this test binary act as the programs `node` and `tidepool` for the sessions in
// testdata/script. Packages install the program as tidepool.
func TestMain(m *testing.M) {
	if err := ci.ReapOrphans(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testscript.Main(m, map[string]func(){"node": main, "tidepool": main})
}

// TestSessions runs each script in testdata/script, with the script's files and the tutorial.
// Scripts that run many deterministic experiments have the condition [long].
func TestSessions(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(name string) (bool, error) {
			if name != "long" {
				return false, fmt.Errorf("no condition %q: long", name)
			}
			return ci.Long(), nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv(ci.RunMark, os.Getenv(ci.RunMark))
			return os.CopyFS(filepath.Join(e.WorkDir, "tutorial"), os.DirFS("../../tutorial"))
		},
	})
}
