//go:build !linux

package repl

import "io"

// typedAhead returns 0: only Linux terminals convert a Ctrl-D to a zero byte.
func typedAhead(io.Reader) int { return 0 }
