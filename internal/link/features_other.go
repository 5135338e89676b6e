//go:build !linux

package link

import "runtime"

// Probe reports no features, because only Linux has them.
func Probe() Features { return Features{TUNProblem: "not on " + runtime.GOOS} }
