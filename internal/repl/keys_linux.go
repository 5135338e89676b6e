package repl

import "golang.org/x/sys/unix"

// These requests read and set a terminal's mode.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
