package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// child is a node in a separate process, controlled through its shell: it reads lines and answers
// with lines of JSON.
type child struct {
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	asked   atomic.Bool // to stop
	// answers are the lines that answer our questions, transfers the finished transfers, which may
	// come at any time.
	answers   chan []byte
	transfers chan control.Transfer
	complaint tail
	ended     chan struct{} // closed when the process has ended; err is then set
	err       error
}

// killDelay is how long a process may take to stop before it is killed.
const killDelay = 2 * time.Second

// startChild starts a node, which stops at the latest with ctx.
func startChild(ctx context.Context, name, program, dir string, args []string) (*child, error) {
	c := &child{
		name:      name,
		process:   exec.CommandContext(ctx, program, args...),
		answers:   make(chan []byte, 16),
		transfers: make(chan control.Transfer, 1),
		ended:     make(chan struct{}),
	}
	c.process.Dir = dir
	c.process.WaitDelay = killDelay
	c.process.Cancel = c.interrupt
	c.process.Stdout = &lineWriter{tell: c.heard}
	c.process.Stderr = &lineWriter{tell: c.complaint.add}
	in, err := c.process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("starting node %s: %w", name, err)
	}
	c.in = in
	if err := c.process.Start(); err != nil {
		return nil, fmt.Errorf("starting node %s: %w", name, err)
	}
	go func() {
		c.err = c.process.Wait()
		close(c.ended)
	}()
	return c, nil
}

// heard processes a line of the node's output. Answers to our questions are JSON arrays. Objects
// with a path are results of transfers. Everything else is an event.
func (c *child) heard(line []byte) error {
	switch {
	case bytes.HasPrefix(line, []byte("[")):
		select {
		case c.answers <- bytes.Clone(line):
		default: // an unexpected answer
		}
	case bytes.HasPrefix(line, []byte("{")):
		var t control.Transfer
		if err := json.Unmarshal(line, &t); err == nil && t.Path != "" {
			select {
			case c.transfers <- t:
			default: // there is only one transfer
			}
		}
	}
	return nil
}

func (c *child) tell(line string) error {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		// The pipe breaks when the process ends. Its exit status says more.
		select {
		case <-c.ended:
			return c.death()
		case <-time.After(time.Second):
			return fmt.Errorf("node %s is not listening: %w", c.name, err)
		}
	}
	return nil
}

// ask sends a question to the node's shell and reads the answer.
func (c *child) ask(ctx context.Context, question string, answer any) error {
	if err := c.tell(question); err != nil {
		return err
	}
	select {
	case line := <-c.answers:
		if err := json.Unmarshal(line, answer); err != nil {
			return fmt.Errorf("node %s: answer to %q: %w", c.name, question, err)
		}
		return nil
	case <-c.ended:
		return c.death()
	case <-ctx.Done():
		return fmt.Errorf("node %s: no answer to %q: %w", c.name, question, context.Cause(ctx))
	}
}

// death describes in one line how the process ended early.
func (c *child) death() error {
	if c.crashed() {
		return fmt.Errorf("node %s: %w%s", c.name, c.err, prefixed(": ", c.complaint.String()))
	}
	if reason := c.complaint.reason(); reason != "" {
		return fmt.Errorf("node %s: %s", c.name, reason)
	}
	if c.err != nil {
		return fmt.Errorf("node %s: %w%s", c.name, c.err, prefixed(": ", c.complaint.String()))
	}
	return fmt.Errorf("node %s stopped too early", c.name)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func (c *child) crashed() bool {
	exit, ok := errors.AsType[*exec.ExitError](c.err)
	return ok && exit.ExitCode() < 0
}

// hangUp closes the shell's input, so that the node stops.
func (c *child) hangUp() { _ = c.in.Close() } // it may have ended already

// wait waits until the process has ended successfully.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		if c.err != nil {
			return c.death()
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s did not stop: %w", c.name, context.Cause(ctx))
	}
}

// interrupt asks the process to stop, so that it can finish its files. If the system has no such
// signal, it kills the process.
func (c *child) interrupt() error {
	if c.asked.Swap(true) {
		return nil // a second signal would not wait for the files
	}
	err := c.process.Process.Signal(os.Interrupt)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return c.process.Process.Kill()
	}
	return err
}

// end stops the process if it is running, and waits for it.
func (c *child) end() {
	_ = c.interrupt() // it may have ended already
	timer := time.NewTimer(killDelay)
	defer timer.Stop()
	select {
	case <-c.ended:
		return
	case <-timer.C:
	}
	_ = c.process.Process.Kill() // it may have ended just now
	<-c.ended
}

// tail keeps the last lines of a node's standard error.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 4

func (t *tail) add(line []byte) error {
	text := strings.TrimSpace(string(line))
	if text == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, text)
	if len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
	return nil
}

// failedLine matches a shell's report of the line of its script that failed.
var failedLine = regexp.MustCompile(`^stdin:[0-9]+: (.*)`)

// reason returns a shell's report of the line that ended it; empty: none.
func (t *tail) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range slices.Backward(t.lines) {
		if words := failedLine.FindStringSubmatch(line); words != nil {
			return words[1]
		}
	}
	return ""
}

// String joins the lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, " | ")
}
