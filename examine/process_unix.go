//go:build unix

package examine

import (
	"os/exec"
	"syscall"
	"time"
)

// group puts a program into its own process group, so that its children are killed with it.
func group(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second // a child may keep the output open
}

// kill ends the program's process group.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
