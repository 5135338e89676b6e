//go:build unix

package services

import (
	"os"
	"syscall"
)

// lockFile locks the file against other transfers, of this node or of another, until it is closed.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
