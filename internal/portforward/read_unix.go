//go:build unix

package portforward

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// receive borrows memory only when there is something to read.
func (m machineEnd) receive() (buf *[relayChunk]byte, k int, err error) {
	raw, err := m.SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		if buf == nil {
			buf, _ = relayBuffers.Get().(*[relayChunk]byte)
		}
		for {
			k, failed = syscall.Read(int(fd), buf[:])
			if !errors.Is(failed, syscall.EINTR) {
				break
			}
		}
		if errors.Is(failed, syscall.EAGAIN) {
			relayBuffers.Put(buf)
			buf = nil
			return false
		}
		return true
	})
	switch {
	case err != nil:
	case failed != nil:
		err = machineError(failed)
	case k == 0:
		err = io.EOF
	}
	return buf, max(k, 0), err
}

// leaves waits until the client has sent its FIN or a reset, and reads nothing of what it said;
// false: the read deadline was first.
func (m machineEnd) leaves() bool {
	raw, err := m.SyscallConn()
	if err != nil {
		return true
	}
	return raw.Read(func(fd uintptr) bool { return saysNoMore(int(fd)) }) == nil
}

// fails waits for the socket's own error: a read behind a FIN says no more than that there was one.
func (m machineEnd) fails(wait bool) error {
	raw, err := m.SyscallConn()
	if err != nil {
		return net.ErrClosed
	}
	var failed error
	if wait {
		err = raw.Read(func(fd uintptr) bool {
			failed = socketError(fd)
			return failed != nil
		})
	} else {
		err = raw.Control(func(fd uintptr) { failed = socketError(fd) })
	}
	if err != nil {
		return net.ErrClosed
	}
	return failed
}

// socketError is why a socket has failed; nil: it has not.
func socketError(fd uintptr) error {
	code, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	switch code {
	case 0:
		return nil
	case int(syscall.EPIPE): // Linux, of a reset behind a FIN
		return syscall.ECONNRESET
	}
	return machineError(syscall.Errno(code))
}
