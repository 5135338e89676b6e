//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package repl

import "os"

// takeKeys is not supported: this system's terminals pass whole lines.
func takeKeys(*os.File, func(key byte)) (release func()) { return nil }
