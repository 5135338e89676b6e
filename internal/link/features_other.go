//go:build !linux

package link

import "runtime"

// Probe reports no features, because they are Linux's.
func Probe() Features { return Features{TUNProblem: "not on " + runtime.GOOS} }
