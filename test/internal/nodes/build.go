package nodes

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

// program is what is under test, once Build has made it.
var program string

// top is the folder of the source tree.
var top string

// Build compiles cmd/node into dir. It is for TestMain; nothing else works before it. Nodes in the
// background are killed when the test has ended, however it did.
func Build(dir string) error {
	if err := testenv.ReapOrphans(); err != nil {
		return err
	}
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("finding the module: %w", err)
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
		return fmt.Errorf("building cmd/node: %w", err)
	}
	program = name
	return nil
}

// depend looks at every file of the program. What a test looks at, go test takes for what its
// result hangs on, so that the result of an older program is not shown from the cache. It has to be
// looked at while tests run: what TestMain does is not noted.
var depend = sync.OnceFunc(func() {
	for _, part := range []string{"cmd", "internal", "go.mod", "go.sum"} {
		// A file that cannot be looked at has failed the build.
		_ = filepath.WalkDir(Path(part), func(path string, _ fs.DirEntry, _ error) error {
			_, err := os.Stat(path)
			return err
		})
	}
})

// Command is the program under test with arguments, to run it by other means than Start.
func Command(args ...string) *exec.Cmd {
	depend()
	cmd := exec.Command(program, args...)
	cmd.Args[0] = "node"   // as one on the PATH is called: hints repeat it
	cmd.Env = os.Environ() // what a test adds comes on top
	cmd.SysProcAttr = sysProcAttr()
	return cmd
}

// Path is a file of the source tree.
func Path(parts ...string) string {
	return filepath.Join(append([]string{top}, parts...)...)
}
