//go:build unix

package examine

import (
	"os/exec"
	"syscall"
	"time"
)

// group puts a program into a process group, so that what it starts ends with it.
func group(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.WaitDelay = time.Second // a child may hold the output open
}

// kill ends the program's process group.
func kill(c *exec.Cmd) { _ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
