// Package long tells tests whether to run their long variants: more seeds, longer worlds, larger
// files. They take minutes, so that CI sets TIDEPOOL_LONG=1 for them and `go test ./...` runs the
// short ones. The race detector makes tests ten times as slow: it never runs the long variants.
package long

import (
	"os"
	"testing"
)

// Runs reports whether the long variants run.
func Runs() bool { return os.Getenv("TIDEPOOL_LONG") != "" && !race && !testing.Short() }

// Only skips a test that has no short variant, unless the long variants run.
func Only(tb testing.TB) {
	tb.Helper()
	if !Runs() {
		tb.Skip("skip: needs TIDEPOOL_LONG=1") // CI fails on it
	}
}

// Plainly skips a test under the race detector: an experiment in a package without goroutines that
// takes a few seconds without the detector. Shorter tests run the same code under the detector.
func Plainly(tb testing.TB) {
	tb.Helper()
	if race {
		tb.Skip("a few seconds")
	}
}
