package netctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Ending is the result of stopping a network. The lists contain the names of nodes.
type Ending struct {
	Ended []string // nodes that were stopped
	Dead  []string // nodes that had already crashed
	// Logs are the logs of the crashed nodes. They are kept until the network starts again.
	Logs []string
}

// Down stops every node of a network and removes the network. It keeps the logs of nodes that had
// crashed, because the logs say why.
func (s *State) Down(ctx context.Context, name string) (done Ending, err error) {
	leave, err := s.enter(ctx, name)
	if err != nil {
		return done, err
	}
	defer leave()
	n, err := s.load(name)
	if errors.Is(err, fs.ErrNotExist) {
		_, err = s.Network(name)
	}
	if err != nil {
		return done, err
	}
	return n.down(ctx)
}

// down is like Down for a locked network. If some machines do not answer, the record of the network
// keeps only those machines.
func (n *Network) down(ctx context.Context) (done Ending, err error) {
	for _, group := range n.processes(n.Nodes) {
		p := n.process(group[0].Name)
		ran, e := p.stop(ctx)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		list := &done.Dead
		if ran {
			list = &done.Ended
		} else if info, e := os.Stat(p.log()); e == nil && info.Size() > 0 {
			done.Logs = append(done.Logs, p.log())
		}
		for _, m := range group {
			*list = append(*list, m.Name)
		}
	}
	if err != nil {
		return done, err
	}
	here := done.Logs
	release, err := n.downParts(ctx, &done)
	defer release()
	if err != nil {
		return done, err
	}
	if len(here) == 0 {
		return done, os.RemoveAll(n.dir)
	}
	return done, n.clear(here)
}

// downParts stops the nodes on other machines and closes the connections to them. No command can
// connect again before the caller calls release.
func (n *Network) downParts(ctx context.Context, done *Ending) (release func(), err error) {
	var mu sync.Mutex
	var left []Machine
	var locks []*os.File
	release = func() {
		for _, lock := range locks {
			_ = lock.Close()
		}
	}
	err = each(n.connections(), func(c *connection) error {
		a, err := PartAnswer{Ending: &Ending{}}, error(nil)
		if c.Folder != "" { // the machine was reached before
			a, err = c.part(ctx, partTime, PartRequest{Do: PartDown})
		}
		lock := c.close(ctx)
		mu.Lock()
		defer mu.Unlock()
		locks = append(locks, lock)
		if err != nil {
			left = append(left, *c.Machine)
			return fmt.Errorf("%w; its nodes may still run: when it answers again, "+
				"`node net down %s` stops them (to forget them, remove %s)", err, n.Name(), n.dir)
		}
		done.Ended = append(done.Ended, a.Ending.Ended...)
		done.Dead = append(done.Dead, a.Ending.Dead...)
		for _, log := range a.Ending.Logs {
			done.Logs = append(done.Logs, c.Name+":"+log)
		}
		return nil
	})
	slices.Sort(done.Ended)
	slices.Sort(done.Dead)
	if err == nil {
		return release, nil
	}
	next := n.manifest
	next.Nodes, next.Machines = nil, left
	return release, errors.Join(err, n.save(next))
}

// clear removes all files from the network's directory, except those in but.
func (n *Network) clear(but []string) error {
	list, err := os.ReadDir(n.dir)
	if err != nil {
		return fmt.Errorf("network %s: %w", n.Name(), err)
	}
	for _, e := range list {
		if path := filepath.Join(n.dir, e.Name()); !slices.Contains(but, path) {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// forget removes the logs of an earlier network with this name.
func (n *Network) forget() error {
	list, err := filepath.Glob(filepath.Join(n.dir, "*.log"))
	for _, path := range list {
		if info, e := os.Lstat(path); e == nil && info.Mode().IsRegular() { // no pipe or device
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
