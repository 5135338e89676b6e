//go:build !linux

package nodes

import "syscall"

// sysProcAttr is nothing: a node whose test has died sees the end of its input and leaves.
func sysProcAttr() *syscall.SysProcAttr { return nil }
