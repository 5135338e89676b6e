package main

import "golang.org/x/sys/unix"

// monotonic is CLOCK_MONOTONIC in nanoseconds, by which the service manager goes.
func monotonic() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}
