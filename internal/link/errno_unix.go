//go:build !windows

package link

import "syscall"

// These are the system's names of the errors that this package distinguishes.
const (
	errAddrInUse        = syscall.EADDRINUSE
	errAddrNotAvailable = syscall.EADDRNOTAVAIL
	errMessageSize      = syscall.EMSGSIZE
	errRefused          = syscall.ECONNREFUSED
)
