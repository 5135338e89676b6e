//go:build !unix

package netctl

import (
	"io/fs"
	"os"
	"os/exec"
)

// tryLock does nothing here: this system has no locks that a child inherits.
func tryLock(*os.File) bool { return true }

// locks: whether a node lives is told by its socket alone.
const locks = false

func detach(*exec.Cmd) {}

func foreign(info fs.FileInfo) string {
	if !info.IsDir() {
		return "it is not a folder"
	}
	return ""
}

// terminate ends a process: nobody can be asked to end here.
func terminate(p *os.Process) error { return p.Kill() }
