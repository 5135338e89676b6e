//go:build !race

package nodes

// Race reports whether the tests, and so the nodes too, run under the race detector.
const Race = false

const race = 0

var raceFlags []string
