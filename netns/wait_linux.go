package netns

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of processes whose parents have ended, so that Wait finds the
// processes that a program leaves. Adopt cannot be undone.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of background processes: %w", err)
	}
	return nil
}

// Wait waits for the program, passes to it the signals that this process gets, and returns nil or
// the program's StatusError. If Adopt was called, Wait also ends or awaits the processes that the
// program has left.
func (q *Process) Wait(left Left) error {
	t := holdTerminal()
	stop := q.passSignals(t)
	status := q.wait()
	stop()
	t.restore()
	left.end()
	if status != 0 {
		return StatusError(status)
	}
	return nil
}

func (q *Process) wait() int {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return statusNotExecuted // another part of this program has waited for the process
		case pid != q.pid:
		case ws.Signaled():
			return statusSignaled + int(ws.Signal())
		case ws.Exited():
			return ws.ExitStatus()
		}
	}
}

// passed are the signals that this process passes to the program. The terminal itself sends SIGINT,
// SIGQUIT and SIGTSTP to the program, because the program is in the foreground process group.
var passed = []os.Signal{
	unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2,
}

// catchSignals catches signals for the program, even before it runs, so that they do not end this
// process.
func (q *Process) catchSignals() {
	q.arrived = make(chan os.Signal, len(passed))
	signal.Notify(q.arrived, passed...)
}

// isQuit reports whether s is SIGQUIT. This process catches SIGQUIT even after the program has
// ended. The terminal sends it to both. If the program ended first, an uncaught SIGQUIT would end
// this process with a stack trace.
func isQuit(s os.Signal) bool { return s == unix.SIGQUIT }

// passSignals passes the caught signals on until the caller calls stop.
func (q *Process) passSignals(t terminal) (stop func()) {
	over := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-q.arrived:
				number, _ := s.(unix.Signal)
				if (number == unix.SIGINT || number == unix.SIGQUIT) && t.foreground() {
					continue
				}
				_ = unix.Kill(q.pid, number) // the program may have exited
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Reset(slices.DeleteFunc(slices.Clone(passed), isQuit)...)
		close(over)
	}
}

// terminal is the controlling terminal, if this process was in its foreground process group.
type terminal struct {
	fd    int // -1: there is no terminal
	group int
}

func holdTerminal() terminal {
	t := terminal{fd: -1, group: unix.Getpgrp()}
	for fd := range stdio() {
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == t.group {
			t.fd = fd
			return t
		}
	}
	return t
}

// foreground reports whether the terminal sends its signals to this process's group.
func (t terminal) foreground() bool {
	if t.fd < 0 {
		return false
	}
	group, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && group == t.group
}

// restore makes this process's group the foreground group again, because a shell that was killed
// leaves its own.
func (t terminal) restore() {
	if t.fd < 0 || t.foreground() {
		return
	}
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, t.group) // the terminal may be gone
	signal.Reset(unix.SIGTTOU)
}

// end ends or awaits the remaining processes.
func (l Left) end() {
	list := children()
	if len(list) == 0 {
		return
	}
	if l.Tell != nil {
		what := "stopping"
		if l.Wait {
			what = "waiting for"
		}
		l.Tell(what + " what the program left: " + strings.Join(named(list), ", "))
	}
	deadline, told := time.Now().Add(l.Grace), map[int]bool{}
	for len(list) > 0 {
		// the children of processes that ended become children of this process
		for _, pid := range list {
			switch {
			case l.Wait:
			case time.Now().After(deadline):
				_ = unix.Kill(pid, unix.SIGKILL) // the process may have exited
			case !told[pid]:
				told[pid] = true
				_ = unix.Kill(pid, unix.SIGTERM)
				_ = unix.Kill(pid, unix.SIGCONT) // so that a stopped process ends, too
			}
		}
		l.awaitEnd()
		list = children()
	}
}

// endInterval is the time between two checks of the processes that must end.
const endInterval = 50 * time.Millisecond

// awaitEnd waits until a child has ended. If the processes must end, it waits not much longer than
// endInterval.
func (l Left) awaitEnd() {
	if l.Wait {
		_, _ = unix.Wait4(-1, nil, 0, nil) // without children, the caller notices that
		return
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	if pid, _ := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid > 0 {
		return
	}
	over := time.NewTimer(endInterval)
	defer over.Stop()
	select {
	case <-ended:
	case <-over.C:
	}
	_, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil) // the child may have been reaped already
}

// children returns the children of this process.
func children() (list []int) {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	for _, t := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	slices.Sort(list)
	return list
}

// named returns the names and numbers of processes that have not ended.
func named(list []int) (names []string) {
	for _, pid := range list {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil {
			names = append(names, fmt.Sprintf("%s (%d)", strings.TrimSpace(string(text)), pid))
		}
	}
	return names
}
