//go:build unix && !linux

package portforward

import "syscall"

// sentFIN reports whether the peer has sent a FIN or a reset. It cannot detect either behind unread
// data.
func sentFIN(fd int) bool {
	var b [1]byte
	n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK)
	return err == nil && n == 0 || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
}
