package link

import "golang.org/x/sys/windows"

// What the system calls the mishaps that are told apart. A datagram that nobody
// was there for shows as a reset.
const (
	errAddrInUse        = windows.WSAEADDRINUSE
	errAddrNotAvailable = windows.WSAEADDRNOTAVAIL
	errMessageSize      = windows.WSAEMSGSIZE
	errRefused          = windows.WSAECONNRESET
)
