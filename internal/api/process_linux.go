package api

import (
	"fmt"
	"os"
	"syscall"
)

// usage reads proc(5).
func usage() (u systemUse) {
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		u.descriptors = uint64(max(0, len(list)-1)) // one entry is the directory that was opened
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err == nil {
		u.mostDescriptors = limit.Cur
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var size, resident uint64
		if _, err := fmt.Sscan(string(text), &size, &resident); err == nil {
			u.resident = resident * uint64(os.Getpagesize())
		}
	}
	return u
}
