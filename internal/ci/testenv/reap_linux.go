package testenv

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// reaper is the environment variable that makes a test binary the reaper of its parent.
const reaper = "TIDEPOOL_TEST_REAPER"

// ReapOrphans starts this binary again as a reaper, which kills all descendants of this process
// when this process exits. TestMain calls it first. In a descendant it does nothing.
func ReapOrphans() error {
	if os.Getenv(reaper) != "" {
		_, _ = io.Copy(io.Discard, os.Stdin) // blocks until the test exits or is killed
		for kill(os.Getenv(RunMark)) {
		}
		os.Exit(0)
	}
	if os.Getenv(RunMark) != "" {
		return nil
	}
	run := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := os.Setenv(RunMark, run); err != nil {
		return fmt.Errorf("reap orphans: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("reap orphans: %w", err)
	}
	var pipe [2]int // the write end remains open until this process exits
	if err := syscall.Pipe2(pipe[:], syscall.O_CLOEXEC); err != nil {
		return fmt.Errorf("reap orphans: %w", os.NewSyscallError("pipe2", err))
	}
	r := os.NewFile(uintptr(pipe[0]), "pipe")
	defer r.Close()
	c := exec.Command(program)
	c.Stdin, c.Env = r, append(os.Environ(), reaper+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // outside of the test's process group
	if err := c.Start(); err != nil {
		return fmt.Errorf("reap orphans: %w", err)
	}
	return nil
}

// kill kills the processes of a run. It reports whether it found any, because those may have
// started others in the meantime.
func kill(run string) (found bool) {
	folders, _ := filepath.Glob("/proc/[1-9]*")
	for _, folder := range folders {
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil || pid == os.Getpid() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, "environ"))
		if err != nil { // the process belongs to another user or has exited
			continue
		}
		for entry := range bytes.SplitSeq(text, []byte{0}) {
			if string(entry) == RunMark+"="+run && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}
	}
	return found
}
