package files

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock locks an open file until it is closed. It returns false if another process, or another
// open file of this process, holds the lock. The locked byte is far beyond most files' content.
func TryLock(f *os.File) (bool, error) {
	const far = 1 << 30
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: far})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
