//go:build unix

package emulation

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's signals from a process: its parent decides when it ends.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill ends a process that was detached, and those that it has started. It may have ended just now.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
