//go:build unix

package door

import (
	"errors"
	"io"
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
