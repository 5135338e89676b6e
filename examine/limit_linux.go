package examine

import "golang.org/x/sys/unix"

// restrict limits what a process of the subject may use: processor time, memory, the size of files
// and core dumps. It ignores limits that it cannot set.
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
