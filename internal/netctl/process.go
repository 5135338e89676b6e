package netctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/files"
)

// These are the timeouts of processes.
const (
	startTime  = 15 * time.Second // limit for a node's first answer
	askTime    = 2 * time.Second  // limit for a node's answer to a request
	endTime    = 6 * time.Second  // limit for a node to stop before it is killed
	reloadTime = 10 * time.Second // limit for a node to apply a changed file
	killTime   = 2 * time.Second  // limit for a killed process to end
	look       = 5 * time.Millisecond
)

// Life is the state of a node's process.
type Life string

// These are the states of a node's process.
const (
	Up   Life = "up"   // the node answers
	Hung Life = "hung" // the process runs, but the node does not answer
	Dead Life = "dead" // there is no process
	// Unreachable means that the node's machine does not answer. The process may be running.
	Unreachable Life = "unreachable"
)

// process is a node's process. Its files are in the network's directory. Nodes in one process share
// the log and the PID file.
type process struct{ dir, node, files string }

func (n *Network) process(node string) process {
	if n.OneProcess && lists(n.Nodes, node) {
		return process{n.dir, node, "network"}
	}
	return process{n.dir, node, node}
}

// processes groups nodes by their process.
func (n *Network) processes(nodes []Member) (groups [][]Member) {
	for _, m := range nodes {
		i := slices.IndexFunc(groups, func(g []Member) bool {
			return n.process(g[0].Name).files == n.process(m.Name).files
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

func (p process) socket() string { return filepath.Join(p.dir, p.node+".sock") }
func (p process) log() string    { return filepath.Join(p.dir, p.files+".log") }
func (p process) pid() string    { return filepath.Join(p.dir, p.files+".pid") }

// client returns a client of the node, a context with a timeout, and a function that closes both.
func (p process) client(ctx context.Context, within time.Duration) (
	c *api.Client, own context.Context, done func(),
) {
	c = api.NewClient(api.Endpoint{Socket: p.socket()}, p.node)
	own, cancel := context.WithTimeout(ctx, within)
	return c, own, func() {
		cancel()
		c.Close()
	}
}

// life returns the state of a node's process, and what is known of the process.
func (p process) life(ctx context.Context) (Life, api.Process) {
	c, ctx, done := p.client(ctx, askTime)
	defer done()
	if is, err := c.Process(ctx); err == nil {
		return Up, is
	}
	if pid, held := p.holder(); held {
		return Hung, api.Process{PID: pid}
	}
	return Dead, api.Process{}
}

// holder returns the process that holds a node's lock. It returns false if no process does.
func (p process) holder() (pid int, held bool) {
	f, _, err := files.Machine().Read(p.pid())
	if err != nil || !locks {
		return 0, false
	}
	defer f.Close()
	if tryLock(f) {
		return 0, false
	}
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0, true
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
	return pid, true
}

// settled is like life, but first waits for a node that is starting or stopping. Such a node holds
// its lock, but does not listen yet, or no longer. An interrupted command leaves such nodes.
func (p process) settled(ctx context.Context) (life Life, is api.Process) {
	until(ctx, startTime, func() bool {
		listens := api.Answers(ctx, p.socket())
		life, is = p.life(ctx)
		return life != Hung || listens
	})
	return life, is
}

// until polls so until it returns true. It returns false after a timeout, or when ctx ends.
func until(ctx context.Context, within time.Duration, so func() bool) bool {
	over := time.NewTimer(within)
	defer over.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-over.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

type child struct {
	process process // of its first node
	nodes   []Member
	cmd     *exec.Cmd
	before  int64         // length of the log before the start
	ended   chan struct{} // closed when the process has ended
}

// what names the child's node or nodes in errors.
func (c *child) what() string {
	if len(c.nodes) == 1 {
		return "node " + c.process.node
	}
	return "network " + filepath.Base(c.process.dir)
}

// start starts the process of nodes, which appends to its log. It may return both a child and an
// error.
func (n *Network) start(plan Plan, nodes []Member) (*child, error) {
	p := n.process(nodes[0].Name)
	c := &child{process: p, nodes: nodes, ended: make(chan struct{})}
	log, before, err := openLog(p.log())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	pid, err := os.OpenFile(p.pid(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer pid.Close()
	if !tryLock(pid) {
		return nil, fmt.Errorf("%s: %w", c.what(), ErrBusy)
	}
	if err := pid.Truncate(0); err != nil { // the file may contain the PID of an earlier process
		return nil, err
	}
	c.before = before
	args := []string{"run", "--daemon", "--socket", p.socket(), nodes[0].File}
	if len(nodes) > 1 {
		args = []string{"net", "process", n.dir}
		for _, m := range nodes {
			args = append(args, m.File)
		}
	}
	c.cmd = exec.Command(plan.Program, slices.Concat(args, plan.Flags)...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if locks {
		c.cmd.ExtraFiles = []*os.File{pid} // the child process keeps the lock
	}
	detach(c.cmd)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.what(), err)
	}
	go func() {
		_ = c.cmd.Wait() // the log contains the reason
		close(c.ended)
	}()
	_, err = fmt.Fprintf(pid, "%d\n", c.cmd.Process.Pid)
	return c, err
}

// openLog opens a log and returns its size. A regular file is also opened for reading, because the
// node shortens it by reading and rewriting.
func openLog(path string) (*os.File, int64, error) {
	const how = os.O_CREATE | os.O_APPEND
	log, err := os.OpenFile(path, how|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, err
	}
	info, err := log.Stat()
	if err == nil && info.Mode().IsRegular() {
		_ = log.Close()
		log, err = os.OpenFile(path, how|os.O_RDWR, 0o600)
	}
	if err != nil {
		_ = log.Close()
		return nil, 0, err
	}
	return log, info.Size(), nil
}

// await waits until the nodes answer.
func (c *child) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime,
		fmt.Errorf("%s does not answer after %v", c.what(), startTime))
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for left := c.nodes; len(left) > 0; {
		select {
		case <-c.ended:
			return &EndedError{
				What: c.what(), State: c.cmd.ProcessState.String(),
				Log: c.process.lastLogLines(complaintLines, c.before).lines,
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		p := c.process
		if p.node = left[0].Name; p.answers(ctx) {
			left = left[1:]
		}
	}
	return nil
}

// answers reports whether a node answers a request. A node listens before it has its UDP ports, but
// answers only afterward.
func (p process) answers(ctx context.Context) bool {
	c, ctx, done := p.client(ctx, askTime)
	defer done()
	_, err := c.Process(ctx)
	return err == nil
}

// programPrefix matches the program and the command at the beginning of an error's text.
var programPrefix = regexp.MustCompile(`^\S+ (run|net process): `)

// EndedError is the error of a process that stopped before its nodes answered.
type EndedError struct {
	What  string   // such as "node A"
	State string   // result, such as "exit status 1" or "signal: killed"
	Log   []string // the last lines of the log
}

func (e *EndedError) Error() string {
	switch how := e.What + " stopped before it answered: " + e.State; {
	case len(e.Log) == 0:
		return how + ", and logged nothing"
	case strings.HasPrefix(e.State, "signal"): // the log does not mention signals
		return how + "; its log:\n" + strings.Join(e.Log, "\n")
	}
	return e.What + ": " + programPrefix.ReplaceAllString(strings.Join(e.Log, "\n"), "")
}

// stop stops a node's process and waits for its exit. It returns false if no process was running.
func (p process) stop(ctx context.Context) (bool, error) {
	life, is := p.life(ctx)
	if life == Hung && is.PID <= 0 { // the starting command was interrupted
		life, is = p.settled(ctx)
	}
	if life == Dead {
		p.sweep()
		return false, nil
	}
	if is.PID <= 0 {
		return true, fmt.Errorf("node %s runs but does not answer, and its process is unknown: "+
			"find it with `fuser %s`", p.node, p.pid())
	}
	process, err := os.FindProcess(is.PID)
	if err != nil {
		return true, fmt.Errorf("node %s: process %d: %w", p.node, is.PID, err)
	}
	defer func() { _ = process.Release() }()
	// Another process may have this PID by now. It is still the node's PID if the lock is held or
	// the socket answers.
	if _, held := p.holder(); locks && !held && !api.Answers(ctx, p.socket()) {
		p.sweep()
		return true, nil
	}
	if err := terminate(process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return true, fmt.Errorf("node %s: stopping process %d: %w", p.node, is.PID, err)
	}
	if !p.gone(ctx, endTime) {
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return true, fmt.Errorf("node %s: killing process %d: %w", p.node, is.PID, err)
		}
		if !p.gone(ctx, killTime) {
			return true, fmt.Errorf("node %s: process %d did not stop", p.node, is.PID)
		}
	}
	p.sweep()
	return true, nil
}

// gone waits until no process holds a node's lock.
func (p process) gone(ctx context.Context, within time.Duration) bool {
	return until(context.WithoutCancel(ctx), within, func() bool {
		_, held := p.holder()
		return !held && (locks || !api.Answers(ctx, p.socket()))
	})
}

// sweep removes the files of a node's process.
func (p process) sweep() {
	_ = os.Remove(p.socket()) // the files may not exist
	_ = os.Remove(p.pid())
}
