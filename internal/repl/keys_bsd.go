//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package repl

import "golang.org/x/sys/unix"

// What reads and sets a terminal's mode.
const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
