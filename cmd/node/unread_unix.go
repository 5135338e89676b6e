//go:build unix

package main

import (
	"context"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// unreadPoll is the time in milliseconds between two checks of ctx.
const unreadPoll = 1000

// unread waits until the pipe or socket f has no reader, and returns true. It returns false if ctx
// ends first, or if f is another kind of file.
func unread(ctx context.Context, f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return false
	}
	for ctx.Err() == nil {
		list := []unix.PollFd{{Fd: int32(f.Fd())}} // poll reports errors without a request
		n, err := unix.Poll(list, unreadPoll)
		if n > 0 && err == nil {
			return list[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	}
	return false
}
