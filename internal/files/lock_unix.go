//go:build unix

package files

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock locks an open file until it is closed. It returns false if another process, or another
// open file of this process, holds the lock. On file systems without locks it always returns true.
func TryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOLCK):
		return true, nil
	}
	return err == nil, err
}
