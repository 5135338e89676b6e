//go:build !unix

package examine

import (
	"os/exec"
	"time"
)

func group(c *exec.Cmd) { c.WaitDelay = time.Second }

func kill(c *exec.Cmd) { _ = c.Process.Kill() }
