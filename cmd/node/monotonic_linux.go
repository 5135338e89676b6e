package main

import "golang.org/x/sys/unix"

// monotonic returns CLOCK_MONOTONIC in nanoseconds, which the service manager expects.
func monotonic() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}
