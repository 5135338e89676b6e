package main

import (
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// noNewPrivileges prevents programs that this process executes from gaining privileges: prctl(2),
// in all threads. A program built with cgo cannot make a system call in all threads. Such a program
// executes itself again, and all its threads inherit the attribute.
func noNewPrivileges() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS,
		1, 0, 0, 0, 0)
	switch {
	case errno == 0:
		return nil
	case !errors.Is(errno, syscall.ENOTSUP):
		return errno
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil || set == 1 {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return &os.PathError{
		Op: "execute", Path: program,
		Err: syscall.Exec(program, os.Args, os.Environ()),
	}
}
