package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/control"
)

// child is a node in a separate process. It stops when its shell's input ends, which also happens
// when the parent process is killed.
type child struct {
	*api.Client // sends requests to the node's socket
	name        string
	process     *exec.Cmd
	in          io.Closer // the shell's input
	asked       atomic.Bool
	stderrLines [][]byte      // last lines of stderr, complete when the process has ended
	ended       chan struct{} // closed when the process has ended; err is then set
	err         error
}

const (
	// killDelay is how long the parent waits for a process to stop before it kills the process.
	killDelay = 2 * time.Second
	// maxStderrLines is how many lines of standard error the parent keeps.
	maxStderrLines = 4
)

// startChild starts a node with a socket in the folder sockets. The end of ctx stops the node.
func startChild(ctx context.Context, name, program, dir, sockets string, args []string) (
	*child, error,
) {
	socket := filepath.Join(sockets, name+".sock")
	c := &child{
		Client: api.NewClient(api.Endpoint{Socket: socket}, name), name: name,
		process: exec.CommandContext(ctx, program, append(args, "--socket", socket)...),
		ended:   make(chan struct{}),
	}
	c.process.Dir = dir
	c.process.WaitDelay = killDelay
	c.process.Cancel = c.interrupt
	c.process.Stderr = &lineWriter{tell: c.keepStderrLine}
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

func (c *child) keepStderrLine(line []byte) error {
	if line = bytes.TrimSpace(line); len(line) > 0 {
		c.stderrLines = append(c.stderrLines, bytes.Clone(line))
		c.stderrLines = c.stderrLines[max(0, len(c.stderrLines)-maxStderrLines):]
	}
	return nil
}

// ask sends a request to a node and returns the answer.
func ask[A any](ctx context.Context, c *child, req control.Request[A]) (A, error) {
	answer, err := control.Ask(ctx, c, req)
	if errors.Is(err, api.ErrGone) {
		select {
		case <-c.ended:
			return answer, c.exitError()
		case <-time.After(killDelay):
		}
	}
	if err != nil {
		err = fmt.Errorf("node %s: %w", c.name, err)
	}
	return answer, err
}

// awaitRoute waits until the node answers and has a route to an address.
func (c *child) awaitRoute(ctx context.Context, to netip.Addr) error {
	poll := time.NewTicker(routePoll)
	defer poll.Stop()
	for {
		routes, err := control.Ask(ctx, c, control.Routes{})
		if err == nil && slices.ContainsFunc(routes, func(r control.Route) bool {
			return r.Prefix.Contains(to)
		}) {
			return nil
		}
		select {
		case <-poll.C:
		case <-c.ended:
			return c.exitError()
		case <-ctx.Done():
			return fmt.Errorf("node %s: %v: %w", c.name, to, context.Cause(ctx))
		}
	}
}

// exitError returns an error of one line that says how the process ended early.
func (c *child) exitError() error {
	if c.err == nil {
		return fmt.Errorf("node %s stopped too early", c.name)
	}
	if len(c.stderrLines) == 0 {
		return fmt.Errorf("node %s: %w", c.name, c.err)
	}
	return fmt.Errorf("node %s: %w: %s", c.name, c.err, bytes.Join(c.stderrLines, []byte(" | ")))
}

// wait waits until the process has exited with status 0.
func (c *child) wait(ctx context.Context) error {
	select {
	case <-c.ended:
		if c.err != nil {
			return c.exitError()
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("node %s did not stop: %w", c.name, context.Cause(ctx))
	}
}

// interrupt asks the process to stop, so that it can complete its files. On systems without such a
// signal it kills the process.
func (c *child) interrupt() error {
	if c.asked.Swap(true) {
		return nil // a second signal would stop the process before its files are complete
	}
	err := c.process.Process.Signal(os.Interrupt)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return c.process.Process.Kill()
	}
	return err
}

// end stops the process if it is still running, and waits for its exit.
func (c *child) end() {
	_ = c.interrupt() // the process may have ended already
	select {
	case <-c.ended:
		return
	case <-time.After(killDelay):
	}
	_ = c.process.Process.Kill() // the process may have just ended
	<-c.ended
}
