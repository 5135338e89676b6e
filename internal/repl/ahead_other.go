//go:build !linux

package repl

import "io"

// typedAhead is 0: only Linux terminals convert a Ctrl-D to a zero.
func typedAhead(io.Reader) int { return 0 }
