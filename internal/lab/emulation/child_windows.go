package emulation

import (
	"os/exec"
	"syscall"
)

// detach keeps the console's signals from a process: its parent decides when it ends.
func detach(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// kill ends a process. It may have ended just now.
func kill(c *exec.Cmd) { _ = c.Process.Kill() }
