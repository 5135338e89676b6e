//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package repl

import "os"

// takeKeys takes none: this system's terminals give whole lines.
func takeKeys(*os.File, func(key byte)) (release func()) { return nil }
