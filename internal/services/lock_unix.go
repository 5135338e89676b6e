//go:build unix

package services

import (
	"os"
	"syscall"
)

// lockFile keeps others from writing to the file while it is open: another
// transfer of this node, or of another.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
