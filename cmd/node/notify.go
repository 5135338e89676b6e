package main

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// These are the states that a service reports to its manager: sd_notify(3).
const (
	serviceReady    = "READY=1"
	serviceStopping = "STOPPING=1"
	serviceAlive    = "WATCHDOG=1"
)

// reloading returns the notification that the service reloads its configuration. It contains the
// timestamp that the manager needs: sd_notify(3), Type=notify-reload.
func reloading() string {
	return fmt.Sprintf("RELOADING=1\nMONOTONIC_USEC=%d", monotonic()/int64(time.Microsecond))
}

// notify reports the service's state to the service manager, if there is one. It ignores errors.
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

// watchdog returns a channel that ticks twice in the service manager's watchdog period. Without a
// watchdog the channel never ticks: sd_watchdog_enabled(3).
func watchdog() (beat <-chan time.Time, stop func()) {
	micros, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err != nil || micros < 2 || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return nil, func() {}
	}
	t := time.NewTicker(time.Duration(micros) * time.Microsecond / 2)
	return t.C, t.Stop
}
