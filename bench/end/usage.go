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

// cpu is the time that this process has run until now, and what of it was not the kernel's.
func cpu() (all, user time.Duration) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic("BUG: bench: getrusage: " + err.Error())
	}
	user = time.Duration(u.Utime.Nano())
	return user + time.Duration(u.Stime.Nano()), user
}

// usage is what this process has used. It collects garbage first, but counts the time before.
func (p *process) usage() Usage {
	var u Usage
	u.CPU, u.User = cpu()
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first found in pools
	runtime.ReadMemStats(&m)
	u.Heap = int64(m.HeapAlloc)
	u.Goroutines = runtime.NumGoroutine()
	u.Resident = Resident(os.Getpid())
	if p.host != nil {
		p.host.Account(&u)
	}
	return u
}

// Resident is a process's memory as the kernel counts it, in bytes; 0: it does not say.
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
	kilobytes, _ := strconv.ParseInt(fields[0], 10, 64) // 0 is said to mean that it is not known
	return kilobytes << 10
}
