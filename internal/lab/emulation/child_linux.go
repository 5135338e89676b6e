package emulation

import (
	"runtime"
	"syscall"
)

// nice is the priority of a run's processes, if the system permits it.
const nice = -15

// withPriority raises the priority of this thread while start starts a process, which inherits it.
// Without the privilege, the process gets the normal priority.
func withPriority(start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const base = 20 // the system call returns this number minus the nice value
	was, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err == nil && syscall.Setpriority(syscall.PRIO_PROCESS, 0, nice) == nil {
		defer func() { _ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, base-was) }()
	}
	return start()
}
