//go:build unix

package portforward

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// receive allocates a buffer only when data can be read.
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

// awaitFIN waits for the client's FIN or reset and leaves its data unread. It returns false if the
// read deadline passes first.
func (m machineEnd) awaitFIN() bool {
	raw, err := m.SyscallConn()
	if err != nil {
		return true
	}
	return raw.Read(func(fd uintptr) bool { return sentFIN(int(fd)) }) == nil
}

// failed returns the socket's error, which a read after a FIN would hide by returning only io.EOF.
func (m machineEnd) failed(wait bool) error {
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

// socketError returns the socket's pending error, or nil.
func socketError(fd uintptr) error {
	code, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR)
	switch code {
	case 0:
		return nil
	case int(syscall.EPIPE): // Linux reports a reset after a FIN as EPIPE
		return syscall.ECONNRESET
	}
	return machineError(syscall.Errno(code))
}
