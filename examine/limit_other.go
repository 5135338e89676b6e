//go:build !linux

package examine

// restrict does nothing on this system.
func restrict(int) {}
