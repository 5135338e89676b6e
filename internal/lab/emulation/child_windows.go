package emulation

import (
	"os/exec"
	"syscall"
)

// detach protects a process from the console's signals, because its parent decides when to stop it.
func detach(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// kill kills a process. The process may have exited already.
func kill(c *exec.Cmd) { _ = c.Process.Kill() }
