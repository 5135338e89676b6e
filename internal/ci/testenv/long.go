// Package testenv is what the tests of many packages share: which tests run here, free ports, the
// files of small networks, and a reaper of the processes that a killed test leaves behind.
//
// Long variants of tests have more seeds, longer worlds and larger files. They take minutes: CI
// sets TIDEPOOL_LONG=1 for them, and `go test ./...` runs the short ones. The race detector makes
// tests ten times as slow: it never runs the long variants.
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
		tb.Skip("skip: needs TIDEPOOL_LONG=1") // CI fails on it
	}
}

// NeedNoRace skips a test under the race detector: an experiment in a package without goroutines
// that takes a few seconds without the detector. Shorter tests run the same code under the
// detector.
func NeedNoRace(tb testing.TB) {
	tb.Helper()
	if race {
		tb.Skip("a few seconds")
	}
}
