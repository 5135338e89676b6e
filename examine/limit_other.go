//go:build !linux

package examine

// restrict limits what a process of the subject may use, where the system can.
func restrict(int) {}
