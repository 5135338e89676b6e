//go:build unix

package lab

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks an open file for this process. It returns false if another process has locked it.
// The lock ends with the process. On file systems without locks it always returns true.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOLCK):
		return true, nil
	}
	return err == nil, err
}
