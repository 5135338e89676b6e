//go:build !linux

package link

import "runtime"

// Probe asks the kernel. These are Linux's alone.
func Probe() Features { return Features{TUNProblem: "not on " + runtime.GOOS} }
