package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// The states that a service tells its manager: sd_notify(3).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
	serviceAlive    = "WATCHDOG=1"
)

// reloading says that the service reads its configuration, with the instant that the manager asks
// for: sd_notify(3), Type=notify-reload.
func reloading() string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic()/int64(time.Microsecond))
}

// notify tells the service manager, if there is one, how the service is. Nobody waits for it: what
// cannot be told is not.
func notify(state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return
	}
	defer c.Close()
	_, _ = c.Write([]byte(state))
}

// watchdog ticks twice as often as the manager wants to hear that the service lives; without one
// that does, never: sd_watchdog_enabled(3).
func watchdog() (beat <-chan time.Time, stop func()) {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err != nil || micros < 2 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil, func() {}
	}
	t := time.NewTicker(time.Duration(micros) * time.Microsecond / 2)
	return t.C, t.Stop
}
