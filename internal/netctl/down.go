package netctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Ending is how a network ended. Nodes are by name.
type Ending struct {
	Ended []string // that ran until now
	Dead  []string // before
	// Logs are those of the dead, which are kept until the network is brought up again.
	Logs []string
}

// Down ends every node of a network and forgets it, but for the logs of those that had ended by
// themselves: somebody may want to know why.
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
	for _, m := range n.Nodes {
		ran, e := n.process(m.Name).stop(ctx)
		switch {
		case e != nil:
			err = errors.Join(err, e)
		case ran:
			done.Ended = append(done.Ended, m.Name)
		default:
			done.Dead = append(done.Dead, m.Name)
			log := n.process(m.Name).log()
			if info, e := os.Stat(log); e == nil && info.Size() > 0 {
				done.Logs = append(done.Logs, log)
			}
		}
	}
	if err != nil {
		return done, err
	}
	if len(done.Logs) == 0 {
		return done, os.RemoveAll(n.dir)
	}
	return done, n.clear(done.Logs)
}

// clear empties the network's folder but for some files.
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

// forget removes the logs that an earlier network of the name has left.
func (n *Network) forget() error {
	list, err := filepath.Glob(filepath.Join(n.dir, "*.log"))
	for _, path := range list {
		if info, e := os.Lstat(path); e == nil && info.Mode().IsRegular() { // a pipe is somebody's
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}
