package repl

import "golang.org/x/sys/unix"

// What reads and sets a terminal's mode.
const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
