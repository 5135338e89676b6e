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

// child is a node in a process of its own, driven through its shell: a line in, a line of JSON out.
type child struct {
	name    string
	process *exec.Cmd
	in      io.WriteCloser
	asked   atomic.Bool // to end
	// answers are the lines that it prints for our questions, transfers those of a transfer that
	// has ended, which come when they want.
	answers   chan []byte
	transfers chan control.Transfer
	complaint tail
	ended     chan struct{} // closed when the process is gone; then err says how
	err       error
}

// killDelay is how long a process may take to end when it is told to, before it is killed.
const killDelay = 2 * time.Second

// startChild starts a node that ends with ctx at the latest.
func startChild(
	ctx context.Context, name, program, dir string, args []string,
) (*child, error) {
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

// heard sorts a line of the node's output. All our questions are answered by JSON arrays; the only
// objects with a path are the results of transfers. Anything else is an event, meant for people.
func (c *child) heard(line []byte) error {
	switch {
	case bytes.HasPrefix(line, []byte("[")):
		select {
		case c.answers <- bytes.Clone(line):
		default: // nobody asked for that many
		}
	case bytes.HasPrefix(line, []byte("{")):
		var t control.Transfer
		if err := json.Unmarshal(line, &t); err == nil && t.Path != "" {
			select {
			case c.transfers <- t:
			default: // there is one transfer
			}
		}
	}
	return nil
}

// tell sends a line to the node's shell.
func (c *child) tell(line string) error {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		// The pipe breaks when the process ends: how it ended says more.
		select {
		case <-c.ended:
			return c.death()
		case <-time.After(time.Second):
			return fmt.Errorf("node %s does not listen: %w", c.name, err)
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

// death says in one line how the process ended, before its time.
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

// hangUp tells the shell that no more will come: the node ends.
func (c *child) hangUp() { _ = c.in.Close() } // it may have ended already

// wait waits until the process has ended in order.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		if c.err != nil {
			return c.death()
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s does not stop: %w", c.name, context.Cause(ctx))
	}
}

// interrupt tells the process to end, which lets it finish its files; where the system has no such
// signal it is killed.
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

// end has the process end, if it runs, and waits until it is gone.
func (c *child) end() {
	_ = c.interrupt() // it may have ended by itself
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

// tail keeps the last lines of what a node complained of.
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

// failedLine is how a shell names the line of its script that failed.
var failedLine = regexp.MustCompile(`^stdin:[0-9]+: (.*)`)

// reason is what a shell said of the line that ended it; empty: nothing.
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

// String joins the lines into one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, " | ")
}
