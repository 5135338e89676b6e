//go:build !unix && !windows

package emulation

import "os/exec"

// detach does nothing: this system has no processes.
func detach(*exec.Cmd) {}

// kill does nothing: this system has no processes.
func kill(*exec.Cmd) {}
