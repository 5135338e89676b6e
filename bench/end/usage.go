//go:build linux

package end

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpu returns the CPU time of this process so far, and its part outside the kernel.
func cpu() (all, user time.Duration) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic("BUG: bench: getrusage: " + err.Error())
	}
	user = time.Duration(u.Utime.Nano())
	return user + time.Duration(u.Stime.Nano()), user
}

// usage returns the resources that this process has used. It runs a garbage collection, whose CPU
// time is not included.
func (p *process) usage() Usage {
	var u Usage
	u.CPU, u.User = cpu()
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees the memory that the first collection moved out of pools
	runtime.ReadMemStats(&m)
	u.Heap = int64(m.HeapAlloc)
	u.Goroutines = runtime.NumGoroutine()
	u.Resident = Resident(os.Getpid())
	if p.host != nil {
		p.host.Account(&u)
	}
	return u
}

// Resident returns a process's resident memory in bytes, as the kernel counts it; 0 if unknown.
func Resident(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kilobytes, _ := strconv.ParseInt(fields[0], 10, 64) // 0 stands for unknown
	return kilobytes << 10
}
