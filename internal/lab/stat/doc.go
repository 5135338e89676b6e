// Package stat says what a set of runs comes to: means with intervals, medians, differences
// between runs that saw the same luck, and fairness.
//
// summary.go describes one set, paired.go two of them, jain.go shares, steady.go what a run does
// from part to part.
package stat
