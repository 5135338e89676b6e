package netctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Times of processes.
const (
	startTime  = 15 * time.Second // for a node to answer
	askTime    = 2 * time.Second  // for a node that is asked how it is
	endTime    = 6 * time.Second  // to end when asked to, before it is killed
	reloadTime = 10 * time.Second // for a node to be as another file says
	killTime   = 2 * time.Second  // for the system to be done with one that was killed
	look       = 5 * time.Millisecond
)

// Life is what is known of whether a node's process lives.
type Life string

// The lives of a node.
const (
	Up   Life = "up"   // it answers
	Hung Life = "hung" // it runs and does not answer
	Dead Life = "dead" // there is no such process
)

// client is a client of a node.
func (n *Network) client(node string) *api.Client {
	return api.NewClient(api.Endpoint{Socket: n.Socket(node)}, node)
}

// life finds out whether a node lives, and by which process.
func (n *Network) life(ctx context.Context, node string) (Life, api.Process) {
	c := n.client(node)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	if p, err := c.Process(ctx); err == nil {
		return Up, p
	}
	if pid, held := n.holder(node); held {
		return Hung, api.Process{PID: pid}
	}
	return Dead, api.Process{}
}

// holder is the process that holds a node's lock; false: none does.
func (n *Network) holder(node string) (pid int, held bool) {
	f, _, err := files.Machine().Read(n.pidFile(node))
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

// settled is a node's life once it is over the moments in which it starts or ends: its lock is held
// then, and nobody listens at its socket. A command that was killed on its way leaves such nodes.
func (n *Network) settled(ctx context.Context, node string) (Life, api.Process) {
	over := time.NewTimer(startTime)
	defer over.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		listens := api.Answers(ctx, n.Socket(node))
		life, p := n.life(ctx, node)
		if life != Hung || listens {
			return life, p
		}
		select {
		case <-tick.C:
		case <-over.C:
			return life, p
		case <-ctx.Done():
			return life, p
		}
	}
}

// child is a node that was just started.
type child struct {
	name  string
	cmd   *exec.Cmd
	log   int64         // the length of its log before
	ended chan struct{} // closed when the process has ended
}

// start starts a node's process. Its log goes on where it was. With an error there may be a child
// nevertheless.
func (n *Network) start(p Plan, m Member) (*child, error) {
	log, before, err := openLog(n.Log(m.Name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	pid, err := os.OpenFile(n.pidFile(m.Name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer pid.Close()
	if !tryLock(pid) {
		return nil, fmt.Errorf("node %s: %w", m.Name, ErrBusy)
	}
	if err := pid.Truncate(0); err != nil { // only now: before, the number may be another's
		return nil, err
	}
	c := &child{name: m.Name, log: before, ended: make(chan struct{})}
	c.cmd = exec.Command(p.Program, slices.Concat(
		[]string{"run", "--daemon", "--socket", n.Socket(m.Name), m.File}, p.Flags)...)
	c.cmd.Stdout, c.cmd.Stderr = log, log
	if locks {
		c.cmd.ExtraFiles = []*os.File{pid} // it holds the lock from here on
	}
	detach(c.cmd)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("node %s: %w", m.Name, err)
	}
	go func() {
		_ = c.cmd.Wait() // the log says why
		close(c.ended)
	}()
	_, err = fmt.Fprintf(pid, "%d\n", c.cmd.Process.Pid)
	return c, err
}

// openLog opens a log and returns its size. A regular file is opened for reading too, because the
// node shortens it.
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

// await waits until a node answers.
func (n *Network) await(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime,
		fmt.Errorf("node %s does not answer after %v", c.name, startTime))
	defer cancel()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-c.ended:
			return &EndedError{
				Node: c.name, State: c.cmd.ProcessState.String(),
				Log: n.lastWords(c.name, complaintLines, c.log).lines,
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		if n.answers(ctx, c.name) {
			return nil
		}
	}
}

// answers reports whether a node answers a question. It listens before it has its UDP ports, and
// answers when it has them.
func (n *Network) answers(ctx context.Context, node string) bool {
	c := n.client(node)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := c.Process(ctx)
	return err == nil
}

// EndedError is a node that ended before it answered.
type EndedError struct {
	Node  string
	State string   // how: "exit status 1", "signal: killed"
	Log   []string // its last lines; none: it said nothing
}

func (e *EndedError) Error() string {
	switch how := "node " + e.Node + " ended before it answered: " + e.State; {
	case len(e.Log) == 0:
		return how + ", without a word"
	case strings.HasPrefix(e.State, "signal"): // its log does not know
		return how + "; its log:\n" + strings.Join(e.Log, "\n")
	}
	return "node " + e.Node + ": " + strings.TrimPrefix(strings.Join(e.Log, "\n"), "node: ")
}

// stop ends a node's process and returns when it is gone; false: there was none.
func (n *Network) stop(ctx context.Context, node string) (bool, error) {
	life, p := n.life(ctx, node)
	if life == Hung && p.PID <= 0 { // who started it ended before the number was noted
		life, p = n.settled(ctx, node)
	}
	if life == Dead {
		n.sweep(node)
		return false, nil
	}
	if p.PID <= 0 {
		return true, fmt.Errorf("node %s runs, does not answer, and its process is not known: "+
			"`fuser %s` tells it", node, n.pidFile(node))
	}
	process, err := os.FindProcess(p.PID)
	if err != nil {
		return true, fmt.Errorf("node %s: process %d: %w", node, p.PID, err)
	}
	defer func() { _ = process.Release() }()
	// The process that was found may be another by now that has got the number: it is the node's
	// only if the node still lives behind its lock.
	if _, held := n.holder(node); locks && !held && !api.Answers(ctx, n.Socket(node)) {
		n.sweep(node)
		return true, nil
	}
	if err := terminate(process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return true, fmt.Errorf("node %s: ending process %d: %w", node, p.PID, err)
	}
	if !n.gone(ctx, node, endTime) {
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return true, fmt.Errorf("node %s: killing process %d: %w", node, p.PID, err)
		}
		if !n.gone(ctx, node, killTime) {
			return true, fmt.Errorf("node %s: process %d does not end", node, p.PID)
		}
	}
	n.sweep(node)
	return true, nil
}

// gone waits until no process holds a node any more.
func (n *Network) gone(ctx context.Context, node string, within time.Duration) bool {
	over := time.NewTimer(within)
	defer over.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		_, held := n.holder(node)
		if !held && (locks || !api.Answers(ctx, n.Socket(node))) {
			return true
		}
		select {
		case <-tick.C:
		case <-over.C:
			return false
		}
	}
}

// sweep removes what a node's process leaves.
func (n *Network) sweep(node string) {
	_ = os.Remove(n.Socket(node)) // they may be gone
	_ = os.Remove(n.pidFile(node))
}
