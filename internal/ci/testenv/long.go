// Package testenv holds helpers for the tests of many packages: conditions for tests, free ports,
// files of small networks, and a reaper for processes that a killed test leaves behind.
//
// Long variants of tests have more seeds, longer simulations and larger files, and take minutes. CI
// sets TIDEPOOL_LONG=1 to run them; `go test ./...` runs the short ones. The race detector makes
// tests ten times slower and never runs the long variants.
package testenv

import (
	"os"
	"testing"
)

// Long reports whether the long variants run.
func Long() bool { return os.Getenv("TIDEPOOL_LONG") != "" && !race && !testing.Short() }

// NeedLong skips a test that has no short variant, unless the long variants run.
func NeedLong(tb testing.TB) {
	tb.Helper()
	if !Long() {
		tb.Skip("skip: needs TIDEPOOL_LONG=1") // CI fails if it sees this
	}
}

// NeedNoRace skips a test under the race detector. Use it for tests that take a few seconds without
// the detector, in packages without goroutines, if shorter tests run the same code under the
// detector.
func NeedNoRace(tb testing.TB) {
	tb.Helper()
	if race {
		tb.Skip("too slow under the race detector")
	}
}
