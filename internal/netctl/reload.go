package netctl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// reloadAll makes nodes reload their changed files where that suffices, and returns the nodes of
// todo to start. Ports may move between any nodes: first all changing and stopping nodes release
// their ports, then p.Check validates the new files, and then each node applies its file. If one
// step fails, all nodes return to their old state. reloadAll itself starts and stops no node. If
// nodes share a process, all of them restart when one starts, stops or restarts.
func (n *Network) reloadAll(
	ctx context.Context, p Plan, todo []Member, done *Change,
) (left []Member, err error) {
	done.Why = map[string][]string{}
	for _, name := range done.Restarted {
		tried, err := n.process(name).reload(ctx, control.Reload{Try: true}, reloadTime)
		if err == nil && len(tried.Restart) == 0 {
			done.Reloaded = append(done.Reloaded, name)
			continue
		} // ignores an error, because an older program may not know the request
		if why := tried.Restart; len(why) > 0 {
			done.Why[name] = why
		}
	}
	reloads := func(name string) bool { return slices.Contains(done.Reloaded, name) }
	done.Restarted = slices.DeleteFunc(done.Restarted, reloads)
	var read []Member
	for _, m := range todo {
		if reloads(m.Name) {
			read = append(read, m)
		} else {
			left = append(left, m)
		}
	}
	if n.OneProcess && len(left)+len(done.Ended) > 0 {
		left, read = n.restartShared(p, done), nil
	}

	leaving := slices.Concat(done.Restarted, done.Ended)
	var asked []string
	defer func() {
		if err != nil {
			undone := n.undo(context.WithoutCancel(ctx), asked, leaving)
			err = errors.Join(err, cmp.Or(undone, errUnchanged))
		}
	}()
	for _, name := range leaving {
		// A node that fails here keeps its ports. The nodes that need them will report the error.
		_, _ = n.process(name).reload(ctx, control.Reload{Release: true, All: true}, askTime)
	}
	for _, name := range done.Reloaded {
		asked = append(asked, name)
		_, err := n.process(name).reload(ctx, control.Reload{Release: true}, reloadTime)
		if err != nil {
			return nil, err
		}
	}
	if p.Check != nil {
		if err := p.Check(left, read); err != nil {
			return nil, err
		}
	}
	for _, name := range done.Reloaded {
		if _, err := n.process(name).reload(ctx, control.Reload{}, reloadTime); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// restartShared plans a restart of all running nodes, because they share a process. It returns the
// nodes to start.
func (n *Network) restartShared(p Plan, done *Change) []Member {
	for _, name := range slices.Concat(done.Reloaded, done.Left) {
		done.Restarted = append(done.Restarted, name)
		done.Why[name] = []string{"the nodes of the network share a process"}
	}
	slices.Sort(done.Restarted)
	done.Reloaded, done.Left, done.Stale = nil, nil, nil
	return p.Nodes
}

var errUnchanged = errors.New("no node was changed")

func (n *Network) undo(ctx context.Context, reloaded, leaving []string) (err error) {
	for _, name := range reloaded {
		_, _ = n.process(name).reload(ctx, control.Reload{Release: true, Undo: true}, reloadTime)
	}
	for _, name := range reloaded {
		_, e := n.process(name).reload(ctx, control.Reload{Undo: true}, reloadTime)
		if e != nil && !errors.Is(e, control.ErrUsage) { // ErrUsage: it had not begun to reload
			err = errors.Join(err, fmt.Errorf("this node could not be restored: %w", e))
		}
	}
	for _, name := range leaving {
		// The node has released what it could. If this request does not reach the node, the node
		// reopens its ports after a timeout.
		_, _ = n.process(name).reload(ctx, control.Reload{Undo: true}, askTime)
	}
	return err
}

func (p process) reload(
	ctx context.Context, r control.Reload, within time.Duration,
) (control.Reloaded, error) {
	c, ctx, done := p.client(ctx, within)
	defer done()
	reloaded, err := control.Ask(ctx, control.Operator(c), r)
	if err != nil {
		return reloaded, fmt.Errorf("node %s: %w", p.node, err)
	}
	return reloaded, nil
}
