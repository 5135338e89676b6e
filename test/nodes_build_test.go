package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/tidepool-net/tidepool/internal/ci/testenv"
)

// program is the path of the program under test, set by Build.
var program string

// top is the root of the source tree.
var top string

// Build compiles cmd/node into dir. TestMain calls it before anything else in this package. Nodes
// in the background are killed when the test ends, however it ends.
func Build(dir string) error {
	if err := testenv.ReapOrphans(); err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	top = filepath.Dir(strings.TrimSpace(string(out)))
	name := filepath.Join(dir, "node")
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	args := append([]string{"build"}, raceFlags...)
	build := exec.Command("go", append(args, "-o", name, "./cmd/node")...)
	build.Dir, build.Stderr = top, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build cmd/node: %w", err)
	}
	program = name
	return nil
}

// dependOnSources stats every file of the program, so that go test does not reuse a cached result
// of an older program: a result depends on the files that the tests stat. It must run in a test,
// because go test ignores what TestMain does.
var dependOnSources = sync.OnceFunc(func() {
	for _, part := range []string{"cmd", "interchange", "internal", "go.mod", "go.sum"} {
		// An unreadable file makes the build fail before this.
		_ = filepath.WalkDir(Path(part), func(path string, _ fs.DirEntry, _ error) error {
			_, err := os.Stat(path)
			return err
		})
	}
})

// Command returns the program under test with arguments, for tests that do not use Start.
func Command(args ...string) *exec.Cmd {
	dependOnSources()
	cmd := exec.Command(program, args...)
	cmd.Args[0] = "node"   // as if found on PATH, because hints repeat it
	cmd.Env = os.Environ() // so that a test can append variables
	cmd.SysProcAttr = sysProcAttr()
	return cmd
}

// Path returns the path of a file of the source tree.
func Path(parts ...string) string {
	return filepath.Join(append([]string{top}, parts...)...)
}
