//go:build !linux

package examine

// restrict limits what a process of the subject may use, if the system supports that.
func restrict(int) {}
