//go:build unix && !linux

package portforward

import "syscall"

// saysNoMore reports whether the peer of a socket has sent its FIN or a reset, as far as that can
// be told while something before it has not been read.
func saysNoMore(fd int) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK)
	return err == nil && n == 0 || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}
