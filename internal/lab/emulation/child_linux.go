package emulation

import (
	"runtime"
	"syscall"
)

// nice is how the processes of a run stand to others of the machine, if the system allows that.
const nice = -15

// withPriority raises the priority of this thread while start starts a process, which inherits it.
// Without the privilege to do so, the process starts at the normal priority.
func withPriority(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const base = 20 // what the system call answers is this less the value
	was, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err == nil && syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice) == nil {
		defer func() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, base-was) }()
	}
	return start()
}
