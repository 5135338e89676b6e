package portforward

import "golang.org/x/sys/unix"

// sentFIN reports whether the peer has sent a FIN or a reset, even if unread data precedes it.
func sentFIN(fd int) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}
