//go:build unix

package realtime

import (
	"os/exec"
	"syscall"
)

// detach keeps the terminal's signals from a process: its parent decides when it ends.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
