//go:build linux

// Package lead starts the measured processes, runs them in turns and collects their results.
//
// child.go handles one process and bed.go those of one run. trial.go measures one run of a
// contender, and turns.go runs contenders in turns. Every wait has a timeout, and every run ends
// its processes by their ids, even after an error.
package lead

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/tidepool-net/tidepool/bench/end"
)

// Child is a measured process.
type Child struct {
	process   *exec.Cmd
	in        io.WriteCloser
	reports   chan end.Report
	complaint bytes.Buffer
}

// readyTimeout limits steps that normally take no time.
const readyTimeout = 15 * time.Second

// Start starts this program as an end and waits until it is ready. The command prefix before can
// put the process into a network namespace. Start also returns the process's first line.
func Start(ctx context.Context, before []string, spec *end.Spec) (*Child, end.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, end.Report{}, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, end.Report{}, err
	}
	args := append(append([]string(nil), before...), self, "end", string(text))
	c := &Child{
		process: exec.CommandContext(ctx, args[0], args[1:]...),
		reports: make(chan end.Report, 16),
	}
	c.process.Stderr = &c.complaint
	c.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.process.WaitDelay = time.Second
	if c.in, err = c.process.StdinPipe(); err != nil {
		return nil, end.Report{}, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, end.Report{}, err
	}
	if err := c.process.Start(); err != nil {
		return nil, end.Report{}, err
	}
	go c.listen(out)
	ready, err := c.Await("ready", readyTimeout)
	if err != nil {
		c.Kill()
		return nil, ready, fmt.Errorf("%s: %w", spec.Stack, err)
	}
	return c, ready, nil
}

func (c *Child) listen(out io.Reader) {
	defer close(c.reports)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s end.Report
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			s = end.Report{Event: "failed", Error: "it printed " + lines.Text()}
		}
		c.reports <- s
	}
}

// Await waits until the process reports an event.
func (c *Child) Await(event string, atMost time.Duration) (end.Report, error) {
	late := time.NewTimer(atMost)
	defer late.Stop()
	for {
		select {
		case s, ok := <-c.reports:
			switch {
			case !ok:
				return s, fmt.Errorf("the process exited: %s",
					bytes.TrimSpace(c.complaint.Bytes()))
			case s.Event == "failed":
				return s, errors.New(s.Error)
			case s.Event == event:
				return s, nil
			}
		case <-late.C:
			return end.Report{}, fmt.Errorf("no %q from the process within %v", event, atMost)
		}
	}
}

// Tell sends a command to the process.
func (c *Child) Tell(word string) error {
	_, err := io.WriteString(c.in, word+"\n")
	return err
}

// Ask sends a command and waits for the answer.
func (c *Child) Ask(word, event string) (end.Report, error) {
	if err := c.Tell(word); err != nil {
		return end.Report{}, err
	}
	return c.Await(event, readyTimeout)
}

// endWithin is how long a process may take to exit after its input ends.
const endWithin = 3 * time.Second

// End closes the process's input, and kills it if it does not exit.
func (c *Child) End() {
	_ = c.in.Close() // the process may have exited already
	late := time.AfterFunc(endWithin, func() { _ = c.process.Process.Kill() })
	defer late.Stop()
	for open := true; open; _, open = <-c.reports {
	}
	_ = c.process.Wait() // the exit status does not matter: the process has reported its errors
}

// Kill kills the process.
func (c *Child) Kill() {
	_ = c.process.Process.Kill()
	c.End()
}
