//go:build unix

package main

import (
	"context"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// unreadLook is how often, in milliseconds, whoever waits for a reader to go looks whether that
// still matters.
const unreadLook = 1000

// unread waits until nobody can read any more what is written to a pipe or a socket; false: ctx has
// ended before, or it is something else, which is read later or by nobody.
func unread(ctx context.Context, f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) == 0 {
		return false
	}
	for ctx.Err() == nil {
		list := []unix.PollFd{{Fd: int32(f.Fd())}} // of errors poll always tells
		n, err := unix.Poll(list, unreadLook)
		if n > 0 && err == nil {
			return list[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
		}
	}
	return false
}
