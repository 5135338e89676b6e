package repl

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// typedAhead returns how many typed bytes a terminal has buffered.
func typedAhead(in io.Reader) int {
	f, ok := in.(*os.File)
	if !ok {
		return 0
	}
	n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
	if err != nil {
		return 0
	}
	return n
}
