package link

import "golang.org/x/sys/windows"

// These are the system's names of the errors that this package distinguishes. A closed port is
// reported as a reset.
const (
	errAddrInUse        = windows.WSAEADDRINUSE
	errAddrNotAvailable = windows.WSAEADDRNOTAVAIL
	errMessageSize      = windows.WSAEMSGSIZE
	errRefused          = windows.WSAECONNRESET
)
