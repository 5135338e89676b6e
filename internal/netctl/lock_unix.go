//go:build unix

package netctl

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// tryLock takes the lock of a file, which belongs to the open file: a process that inherits it
// holds the lock until it ends. False: somebody else has it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// locks: there are such locks.
const locks = true

// detach has a process live on when the terminal that it was started from is gone, and not be hit
// by its Ctrl-C.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// foreign says why a folder is not ours alone; empty: it is.
func foreign(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return "it is not a folder"
	case ok && int(stat.Uid) != os.Geteuid():
		return fmt.Sprintf("it belongs to user %d: run the command as that user", stat.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return "other users may write to it: `chmod go-w` forbids that"
	}
	return ""
}

// terminate asks a process to end.
func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
