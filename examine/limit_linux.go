package examine

import "golang.org/x/sys/unix"

// restrict limits the resources of a subject's process: processor time, memory, file size and core
// dumps. It ignores limits that it cannot set.
func restrict(pid int) {
	for _, l := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_CPU, 120},
		{unix.RLIMIT_DATA, 4 << 30},
		{unix.RLIMIT_FSIZE, 512 << 20},
		{unix.RLIMIT_CORE, 0},
	} {
		_ = unix.Prlimit(pid, l.resource, &unix.Rlimit{Cur: l.most, Max: l.most}, nil)
	}
}
