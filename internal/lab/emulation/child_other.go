//go:build !linux

package emulation

// withPriority has start start a process. There is no more to it here: a priority is the whole
// process's.
func withPriority(start func() error) error { return start() }
