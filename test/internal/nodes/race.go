//go:build race

package nodes

// Race reports whether the tests, and so the nodes too, run under the race detector.
const Race = true

const race = 1

var raceFlags = []string{"-race"}
