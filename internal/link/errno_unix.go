//go:build !windows

package link

import "syscall"

// What the system calls the mishaps that are told apart.
const (
	errAddrInUse        = syscall.EADDRINUSE
	errAddrNotAvailable = syscall.EADDRNOTAVAIL
	errMessageSize      = syscall.EMSGSIZE
	errRefused          = syscall.ECONNREFUSED
)
