//go:build !linux

package repl

import "io"

// typedAhead is for terminals that make a zero of a Ctrl-D; these keep it.
func typedAhead(io.Reader) int { return 0 }
