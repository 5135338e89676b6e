// Package long tells tests of pure rooms whether their long runs are wanted. They are
// not in short mode, nor under the race detector, which makes them ten times as long and
// has nothing to find in code without goroutines that the short ones do not show it.
package long

import "testing"

// Runs reports whether long runs are wanted.
func Runs() bool { return !race && !testing.Short() }

// Plainly skips a test under the race detector: an experiment of a room without goroutines that
// takes a few seconds without it. The plain tests make it, and shorter ones show the detector the
// same code.
func Plainly(tb testing.TB) {
	tb.Helper()
	if race {
		tb.Skip("a few seconds")
	}
}
