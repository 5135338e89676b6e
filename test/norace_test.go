//go:build !race

package e2e_test

// Race reports whether the tests, and so the nodes too, run under the race detector.
const Race = false

const race = 0

var raceFlags []string
