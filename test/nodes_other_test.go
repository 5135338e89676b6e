//go:build !linux

package e2e_test

import "syscall"

// sysProcAttr returns nil: when the test dies, the node sees the end of its input and exits.
func sysProcAttr() *syscall.SysProcAttr { return nil }
