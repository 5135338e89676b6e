//go:build unix

package emulation

import (
	"os/exec"
	"syscall"
)

// detach protects a process from the terminal's signals, because its parent stops it.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// kill kills a detached process and its children. The process may have exited already.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
