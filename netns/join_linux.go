package netns

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// joinName is the name (Args[0]) of a process that joins namespaces and then executes a program.
const joinName = "tidepool-netns-join"

// Join runs a program in existing namespaces, given by the files of their user, network and mount
// namespaces. Call Wait after it.
func Join(namespaces []*os.File, p Program) (*Process, error) {
	dir := p.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, &SetupError{Op: "working directory", Err: err}
		}
	}
	env := p.Env
	if env == nil {
		env = os.Environ()
	}
	var f joining
	for i := range f.spaces {
		if i >= len(namespaces) {
			return nil, &SetupError{Op: "join", Err: unix.EBADF}
		}
		f.spaces[i] = namespaces[i].Fd()
	}
	args := append([]string{joinName, dir}, p.Args...)
	var err error
	if f.path, err = syscall.BytePtrFromString("/proc/self/exe"); err == nil {
		f.args, err = syscall.SlicePtrFromStrings(args)
	}
	if err == nil {
		f.env, err = syscall.SlicePtrFromStrings(env)
	}
	if err != nil {
		return nil, &SetupError{Op: "arguments", Err: err}
	}
	// A process that changes its user namespace must have only one thread (setns(2)), and no signal
	// handlers of Go until it executes another program.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	var all unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &f.signals); err != nil {
		return nil, &SetupError{Op: "signals", Err: err}
	}
	q := &Process{name: p.Args[0]}
	q.catchSignals()
	pid, errno := f.fork()
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &f.signals, nil) // the mask was valid before
	runtime.KeepAlive(namespaces)
	if errno != 0 {
		signal.Stop(q.arrived)
		return nil, &SetupError{Op: "fork", Err: errno}
	}
	q.pid = int(pid)
	return q, nil
}

// joining has everything that the new process needs. Join prepares it, because the process must not
// allocate memory.
type joining struct {
	spaces    [3]uintptr // descriptors of the user, network and mount namespaces
	path      *byte
	args, env []*byte
	signals   unix.Sigset_t // signal mask for the program
}

// statusNotJoined is the exit status of a process that could not join, for example because another
// user created the namespaces.
const statusNotJoined = 125

// fork starts a process that joins the namespaces and executes this program again. The new process
// has a copy of only one thread of the Go runtime, so it uses only system calls.
//
//go:norace
//go:noinline
func (f *joining) fork() (pid uintptr, errno syscall.Errno) {
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return pid, errno
	}
	for i := range f.spaces {
		if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, f.spaces[i], 0, 0); errno != 0 {
			break
		}
	}
	if errno == 0 {
		const maskBytes = 8
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
			uintptr(unsafe.Pointer(&f.signals)), 0, maskBytes, 0, 0)
		_, _, _ = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(f.path)),
			uintptr(unsafe.Pointer(&f.args[0])), uintptr(unsafe.Pointer(&f.env[0])))
	}
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, statusNotJoined, 0, 0)
	}
}

// joined executes the program in a process that Join has created.
func joined(args []string) {
	runtime.LockOSThread() // the death signal belongs to the thread that executes the program
	err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	if err == nil {
		err = os.Chdir(args[0])
	}
	if err == nil {
		err = execute(args[1:])
	}
	e := &ExecError{args[1], err}
	_, _ = fmt.Fprintln(os.Stderr, e) // the exit status reports the error, too
	os.Exit(e.Status())
}
