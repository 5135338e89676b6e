//go:build !unix

package netctl

import (
	"io/fs"
	"os"
	"os/exec"
)

// tryLock does nothing: this system has no locks that a child process inherits.
func tryLock(*os.File) bool { return true }

// locks is false: only a node's socket shows whether the node is running.
const locks = false

func detach(*exec.Cmd) {}

func foreign(info fs.FileInfo) string {
	if !info.IsDir() {
		return "it is not a folder"
	}
	return ""
}

// terminate kills a process: this system has no signal that asks a process to stop.
func terminate(p *os.Process) error { return p.Kill() }
