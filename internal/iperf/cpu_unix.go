//go:build unix

package iperf

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuNow returns the processor time used so far, or zero if the system does not report it.
func cpuNow() cpuTime {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return cpuTime{}
	}
	return cpuTime{time.Duration(u.Utime.Nano()), time.Duration(u.Stime.Nano())}
}
