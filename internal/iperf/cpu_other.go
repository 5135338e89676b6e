//go:build !unix

package iperf

// cpuNow returns zero: the processor time is not known on this system.
func cpuNow() cpuTime { return cpuTime{} }
