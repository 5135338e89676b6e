//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tidepool-net/tidepool/internal/repl"
)

// mayStop reports whether another process can continue this one after Ctrl-Z. That process is a
// shell with job control, which puts each job in its own process group.
func mayStop() bool {
	session, err := unix.Getsid(0)
	if err != nil || signal.Ignored(syscall.SIGTSTP) {
		return false
	}
	parents, err := unix.Getsid(os.Getppid())
	return err == nil && parents == session && unix.Getpgrp() != session
}

// suspending makes Ctrl-Z stop the process only after the shell has released the terminal. cancel
// ends that.
func suspending(shell *repl.Shell) (cancel func()) {
	pressed := make(chan os.Signal, 1)
	signal.Notify(pressed, syscall.SIGTSTP)
	go func() {
		for range pressed {
			if mayStop() {
				shell.Suspend(stop)
			}
		}
	}()
	return func() { signal.Stop(pressed) }
}

// stop stops the process and returns when the process continues. It cannot use SIGTSTP, because Go
// does not restore that signal's default action.
func stop() {
	resumed := make(chan os.Signal, 1)
	signal.Notify(resumed, syscall.SIGCONT)
	defer signal.Stop(resumed)
	if syscall.Kill(os.Getpid(), syscall.SIGSTOP) == nil {
		<-resumed
	}
}
