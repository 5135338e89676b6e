//go:build linux

// Package lead raises the processes that are measured, has them do their work in turns, and gathers
// what they say.
//
// child.go is one process, bed.go those of one run and network; a trial.go has a contender do one
// run, turns.go has contenders take turns. Every wait has its end, and a run ends its processes by
// their numbers, whatever happened.
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

// Child is a process that is measured.
type Child struct {
	process   *exec.Cmd
	in        io.WriteCloser
	said      chan end.Said
	complaint bytes.Buffer
}

// patience is how long a process may take for what takes no time.
const patience = 15 * time.Second

// Start starts this very program as an end, with a command in front of it that may put it into a
// network namespace, and waits until it is ready. It also returns what the process said then.
func Start(ctx context.Context, before []string, spec *end.Spec) (*Child, end.Said, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, end.Said{}, err
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, end.Said{}, err
	}
	args := append(append([]string(nil), before...), self, "end", string(text))
	c := &Child{
		process: exec.CommandContext(ctx, args[0], args[1:]...),
		said:    make(chan end.Said, 16),
	}
	c.process.Stderr = &c.complaint
	c.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.process.WaitDelay = time.Second
	if c.in, err = c.process.StdinPipe(); err != nil {
		return nil, end.Said{}, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, end.Said{}, err
	}
	if err := c.process.Start(); err != nil {
		return nil, end.Said{}, err
	}
	go c.listen(out)
	ready, err := c.Await("ready", patience)
	if err != nil {
		c.Kill()
		return nil, ready, fmt.Errorf("%s: %w", spec.Stack, err)
	}
	return c, ready, nil
}

func (c *Child) listen(out io.Reader) {
	defer close(c.said)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s end.Said
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			s = end.Said{Event: "failed", Error: "it says " + lines.Text()}
		}
		c.said <- s
	}
}

// Await waits until the process says that.
func (c *Child) Await(event string, atMost time.Duration) (end.Said, error) {
	late := time.NewTimer(atMost)
	defer late.Stop()
	for {
		select {
		case s, ok := <-c.said:
			switch {
			case !ok:
				return s, fmt.Errorf("the process has ended: %s",
					bytes.TrimSpace(c.complaint.Bytes()))
			case s.Event == "failed":
				return s, errors.New(s.Error)
			case s.Event == event:
				return s, nil
			}
		case <-late.C:
			return end.Said{}, fmt.Errorf("%q was not heard within %v", event, atMost)
		}
	}
}

// Tell says a word to the process.
func (c *Child) Tell(word string) error {
	_, err := io.WriteString(c.in, word+"\n")
	return err
}

// Ask says a word and waits for the answer.
func (c *Child) Ask(word, event string) (end.Said, error) {
	if err := c.Tell(word); err != nil {
		return end.Said{}, err
	}
	return c.Await(event, patience)
}

// endWithin is how long a process may take to end by itself.
const endWithin = 3 * time.Second

// End has the process end, and makes sure of it.
func (c *Child) End() {
	_ = c.in.Close() // it may have ended
	late := time.AfterFunc(endWithin, func() { _ = c.process.Process.Kill() })
	defer late.Stop()
	for open := true; open; _, open = <-c.said {
	}
	_ = c.process.Wait() // how it ended is of no interest: it has said what it had to
}

// Kill ends the process at once.
func (c *Child) Kill() {
	_ = c.process.Process.Kill()
	c.End()
}
