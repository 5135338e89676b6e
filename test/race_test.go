//go:build race

package e2e_test

import "os"

// Race reports whether the tests, and so the nodes too, run under the race detector.
const Race = true

const race = 1

var raceFlags = []string{"-race"}

// The race detector makes every process sleep for a second before it exits.
func init() { os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=10") }
