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

// reloadAll has the nodes whose file is another read it, where that does, and returns those of todo
// that are left to be started. Ports may go from any node to any other: all that change or end give
// up theirs first, then check judges those that are to be started, then each takes what its file
// says. If one of them cannot, all are as before; none has been ended or started yet.
func (n *Network) reloadAll(
	ctx context.Context, todo []Member, done *Change, check func(start, reload []Member) error,
) (left []Member, err error) {
	done.Why = map[string][]string{}
	for _, name := range done.Restarted {
		tried, err := n.process(name).reload(ctx, control.Reload{Try: true}, reloadTime)
		if err == nil && len(tried.Restart) == 0 {
			done.Reloaded = append(done.Reloaded, name)
			continue
		} // else it is an older program's, say
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

	leaving := slices.Concat(done.Restarted, done.Ended)
	var asked []string
	defer func() {
		if err != nil {
			undone := n.undo(context.WithoutCancel(ctx), asked, leaving)
			err = errors.Join(err, cmp.Or(undone, errUnchanged))
		}
	}()
	for _, name := range leaving {
		// One that cannot keeps its ports: who wants them says so.
		_, _ = n.process(name).reload(ctx, control.Reload{Release: true, All: true}, askTime)
	}
	for _, name := range done.Reloaded {
		asked = append(asked, name)
		_, err := n.process(name).reload(ctx, control.Reload{Release: true}, reloadTime)
		if err != nil {
			return nil, err
		}
	}
	if check != nil {
		if err := check(left, read); err != nil {
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

var errUnchanged = errors.New("nothing was changed")

// undo leads nodes back the way that they came.
func (n *Network) undo(ctx context.Context, reloaded, leaving []string) (err error) {
	for _, name := range reloaded {
		_, _ = n.process(name).reload(ctx, control.Reload{Release: true, Undo: true}, reloadTime)
	}
	for _, name := range reloaded {
		_, e := n.process(name).reload(ctx, control.Reload{Undo: true}, reloadTime)
		if e != nil && !errors.Is(e, control.ErrUsage) { // it had not begun
			err = errors.Join(err, fmt.Errorf("and this node has changed: %w", e))
		}
	}
	for _, name := range leaving {
		// It gave up what it could, and if it cannot be asked, it takes that back by itself.
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
