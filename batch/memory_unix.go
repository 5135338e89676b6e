//go:build unix

package batch

import (
	"os"
	"runtime"
	"syscall"
)

// maxMemory returns the largest resident set of a process that has ended, in bytes.
func maxMemory(s *os.ProcessState) int64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(u.Maxrss) //nolint:unconvert // 32 bits on some machines
	}
	return int64(u.Maxrss) << 10 //nolint:unconvert // as above
}
