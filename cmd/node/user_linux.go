package main

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// noNewPrivileges keeps what the process may execute from gaining privileges. Programs that use cgo
// cannot set it for all threads: there it is left as it is.
func noNewPrivileges() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS,
		1, 0, 0, 0, 0)
	if errno == 0 || errors.Is(errno, syscall.ENOTSUP) {
		return nil
	}
	return errno
}
