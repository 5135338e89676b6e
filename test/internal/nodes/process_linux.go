package nodes

import "syscall"

// sysProcAttr has the kernel end a node whose test has died without a word.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
