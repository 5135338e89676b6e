//go:build !linux

package emulation

// withPriority calls start. On this system, threads have no priority of their own.
func withPriority(start func() error) error { return start() }
