package e2e_test

import "syscall"

// sysProcAttr makes the kernel kill the node when the test dies.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
