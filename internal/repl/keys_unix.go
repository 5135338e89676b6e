//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package repl

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// takeKeys calls do with every key until the caller calls release. It returns nil if the process is
// in the background, because such a process must not use the terminal.
func takeKeys(tty *os.File, do func(key byte)) (release func()) {
	fd := int(tty.Fd())
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil
	}
	if front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || front != unix.Getpgrp() {
		return nil // changing the mode would stop the process
	}
	mode := *before
	mode.Lflag &^= unix.ICANON | unix.ECHO // keep ISIG: Ctrl-C and Ctrl-Z send signals
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 0, 1
	if err := unix.IoctlSetTermios(fd, setTermios, &mode); err != nil {
		return nil
	}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		readKeys(fd, do, over)
	}()
	return func() {
		close(over)
		<-done
		_ = unix.IoctlSetTermios(fd, setTermios, before) // fails if the terminal is closed
	}
}

// readKeys reads from a terminal on which a read without input returns after a tenth of a second.
func readKeys(fd int, do func(key byte), over <-chan struct{}) {
	const pause = 10 * time.Millisecond
	var key [1]byte
	for {
		select {
		case <-over:
			return
		default:
		}
		n, err := unix.Read(fd, key[:])
		switch {
		case n == 1:
			do(key[0])
		case err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN):
			return
		default: // reading from a closed terminal returns at once
			time.Sleep(pause)
		}
	}
}
