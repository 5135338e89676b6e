//go:build unix

package netctl

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// tryLock locks a file. It returns false if another process holds the lock. The lock belongs to the
// open file, so a process that inherits the file holds the lock until the process ends.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// locks is true: this system has locks that a child process inherits.
const locks = true

// detach makes a process independent of the terminal and of Ctrl-C.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// foreign says why other users can change a directory, or returns "" if they cannot.
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

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }
