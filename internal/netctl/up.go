package netctl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/files"
)

// Plan is a network to run.
type Plan struct {
	Name   string
	Source string // directory or file that describes the nodes
	Nodes  []Member
	// OneProcess makes a new network run in one process. A network keeps what it was started with.
	OneProcess bool
	// Program is the executable that runs a node.
	Program string
	// Flags are additional flags of `node run` for each node.
	Flags []string
	// Check, if set, checks whether nodes can run with their files. It receives the nodes to start
	// and those to reload. If it returns an error, nothing changes.
	Check func(start, reload []Member) error
	// Machines are the other machines. Their nodes have a Text and are not in Nodes. On them
	// PartFlags replace Flags.
	Machines  []Machine
	PartFlags PartFlags
	// Crossings are the links between machines. They are tested once the nodes are up.
	Crossings []Crossing
	// Place returns the error for a PartAnswer with Problems. It must be set if there are machines.
	Place func(machine string, problems json.RawMessage) error
	// Tell is called with remarks, one line each. It must be set if there are machines.
	Tell func(string)
}

// Change lists what has changed. The lists contain the names of nodes.
type Change struct {
	Network   *Network `json:"-"`
	Started   []string `json:"started"`   // nodes that were not running
	Reloaded  []string `json:"reloaded"`  // nodes that have applied a changed file: see Apply
	Restarted []string `json:"restarted"` // nodes with a change that needs a new process
	// Why lists the changes that need a new process, for each node in Restarted.
	Why   map[string][]string `json:"why,omitempty"`
	Ended []string            `json:"ended"` // nodes that are not in the plan
	Left  []string            `json:"left"`  // nodes that are unchanged
	Stale []string            `json:"stale"` // nodes in Left whose files have changed
}

// MarshalJSON encodes every list as an array, even an empty one, and the network as a name.
func (c Change) MarshalJSON() ([]byte, error) {
	for _, list := range []*[]string{
		&c.Started, &c.Reloaded, &c.Restarted, &c.Ended, &c.Left, &c.Stale,
	} {
		*list = append([]string{}, *list...)
	}
	type fields Change
	return json.Marshal(struct {
		Network string `json:"network"`
		Source  string `json:"source"`
		Folder  string `json:"folder"` // directory of the logs and sockets
		fields
	}{c.Network.Name(), c.Network.Source(), c.Network.Dir(), fields(c)})
}

// Up starts the nodes of a plan that are not running. If one of them fails, Up stops those that it
// has started.
func (s *State) Up(ctx context.Context, p Plan) (Change, error) { return s.bringUp(ctx, p, false) }

// Apply changes a network to match a plan: it starts new nodes, makes nodes reload changed files,
// restarts those that cannot, and stops nodes that are not in the plan. Ports may move between
// nodes. If a node cannot run with its file, nothing changes, unless a node was already stopped.
func (s *State) Apply(ctx context.Context, p Plan) (Change, error) {
	return s.bringUp(ctx, p, true)
}

func (s *State) bringUp(ctx context.Context, p Plan, apply bool) (done Change, err error) {
	if err := p.digest(s.root); err != nil {
		return done, err
	}
	leave, err := s.enter(ctx, p.Name)
	if err != nil {
		return done, err
	}
	defer leave()
	n, fresh, err := s.place(p)
	if err != nil {
		return done, err
	}
	defer func() {
		if err != nil && fresh {
			err = errors.Join(err, n.withdraw(context.WithoutCancel(ctx), p))
		}
	}()
	done.Network = n
	if err := n.join(ctx, p, apply, fresh); err != nil {
		return done, err
	}
	if err := n.bringHere(ctx, p, apply, fresh, &done); err != nil {
		return done, err
	}
	if err := n.bringParts(ctx, p, apply, &done); err != nil {
		if apply && !fresh {
			err = &HalfwayError{cause: err, state: fmt.Sprintf("network %s may be only partly "+
				"changed: fix the error above; `%s` then continues", p.Name, n.ApplyCommand())}
		}
		return done, err
	}
	return done, n.tryLinks(ctx, p, &done)
}

// bringHere starts or changes the nodes of this machine and records the new network.
func (n *Network) bringHere(ctx context.Context, p Plan, apply, fresh bool, done *Change) error {
	todo, err := n.compare(ctx, p, apply, done)
	if err != nil {
		return err
	}
	if n.OneProcess && !apply && len(todo) > 0 && len(done.Left) > 0 {
		return fmt.Errorf("network %s runs in one process, without %s: `%s` restarts all its nodes",
			p.Name, strings.Join(done.Started, " "), n.ApplyCommand())
	}
	next := n.next(p, apply, done)
	record, err := n.draft(next)
	if err != nil {
		return fmt.Errorf("network %s: %w", p.Name, err)
	}
	defer record.discard()
	own, err := draftFiles(slices.Concat(todo, p.remoteMembers()))
	if err != nil {
		return fmt.Errorf("network %s: %w", p.Name, err)
	}
	defer own.discard()
	if fresh { // only the record makes the directory a network
		if err := record.keep(); err != nil {
			return fmt.Errorf("network %s: %w", p.Name, err)
		}
		n.manifest = next
	}
	if err := own.try(); err != nil {
		return fmt.Errorf("network %s: %w", p.Name, err)
	}
	if todo, err = n.reloadAll(ctx, p, todo, done); err != nil {
		own.undo()
		return err
	}
	err = n.replace(ctx, p, done, todo, func() error {
		if fresh {
			return nil // already recorded
		}
		n.manifest = next
		return record.keep()
	})
	if err != nil && apply && !fresh {
		err = &HalfwayError{cause: err, state: n.halfway(context.WithoutCancel(ctx), next, p)}
	}
	return err
}

// replace stops the nodes that are removed or restarted, records the new state of the network, and
// starts the nodes of todo.
func (n *Network) replace(
	ctx context.Context, p Plan, done *Change, todo []Member, note func() error,
) error {
	for _, name := range slices.Concat(done.Ended, done.Restarted) {
		if _, err := n.process(name).stop(ctx); err != nil {
			return err
		}
	}
	if err := note(); err != nil {
		return fmt.Errorf("network %s: %w", p.Name, err)
	}
	return n.startAll(ctx, p, todo)
}

// digest computes the files' digests, validates the names and sorts the nodes.
func (p *Plan) digest(root string) (err error) {
	if err := CheckName(p.Name); err != nil {
		return fmt.Errorf("network %w; choose another with --name", err)
	}
	p.Nodes = slices.Clone(p.Nodes)
	slices.SortFunc(p.Nodes, byName)
	if err := digest(p.Nodes, root, p.Name); err != nil {
		return err
	}
	for _, m := range p.Machines {
		if err := digest(m.Nodes, root, p.Name); err != nil {
			return err
		}
	}
	return nil
}

func digest(nodes []Member, root, network string) (err error) {
	for i := range nodes {
		m := &nodes[i]
		if err := CheckName(m.Name); err != nil {
			return fmt.Errorf("%s: %w", m.File, err)
		}
		n := Network{dir: filepath.Join(root, network)}
		if err := api.CheckSocket(n.Socket(m.Name)); err != nil {
			return fmt.Errorf("%w: %w; choose a shorter --state", ErrUsage, err)
		}
		text := m.Text
		if text != nil {
			m.File = filepath.Join(root, network, m.Name+".lnx")
		} else if text, err = files.Text(m.File, files.MaxText); err != nil {
			return err
		}
		if m.File, err = filepath.Abs(m.File); err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		m.SHA256 = hex.EncodeToString(sum[:])
	}
	return nil
}

// place finds the network of a plan, or creates a directory for it.
func (s *State) place(p Plan) (n *Network, fresh bool, err error) {
	n, err = s.load(p.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n = &Network{dir: filepath.Join(s.root, p.Name)}
		n.manifest = manifest{
			Name: p.Name, Source: p.Source, Started: time.Now().Round(0), OneProcess: p.OneProcess,
		}
		if err := os.MkdirAll(n.dir, 0o700); err != nil {
			return nil, true, fmt.Errorf("network %s: %w", p.Name, err)
		}
		if err := n.vacant(); err != nil {
			return n, true, err
		}
		return n, true, n.forget()
	case err != nil:
		return nil, false, err
	case n.Source() != p.Source:
		return nil, false, fmt.Errorf("network %s: %w, from %s; `node net down %s` stops it, and "+
			"--name gives the new one another name", p.Name, ErrTaken, n.Source(), p.Name)
	case p.OneProcess && !n.OneProcess:
		return nil, false, fmt.Errorf("network %s: %w, with one process for each node; `node net "+
			"down %s` stops it", p.Name, ErrTaken, p.Name)
	}
	return n, false, nil
}

// leftovers matches files that a network without a record may have left.
var leftovers = regexp.MustCompile(`^(\.s.*|.*\.(new|log|pid|sock))$`)

// vacant returns an error if a directory without a record contains other files, because stopping
// the network would delete them.
func (n *Network) vacant() error {
	list, err := os.ReadDir(n.dir)
	if err != nil {
		return fmt.Errorf("network %s: %w", n.Name(), err)
	}
	for _, e := range list {
		if !leftovers.MatchString(e.Name()) {
			return fmt.Errorf("network %s: %w in %s: %s is there but is not a network; choose "+
				"another --state, or --name", n.Name(), ErrUsage, n.dir, e.Name())
		}
	}
	return nil
}

func (n *Network) compare(
	ctx context.Context, p Plan, apply bool, done *Change,
) (todo []Member, err error) {
	for _, m := range p.Nodes {
		life, _ := n.process(m.Name).settled(ctx)
		before := slices.IndexFunc(n.Nodes, func(o Member) bool { return o.Name == m.Name })
		switch {
		case life == Hung:
			return nil, fmt.Errorf("node %s runs but does not answer: `node net down %s` stops it",
				m.Name, n.Name())
		case life == Dead:
			done.Started = append(done.Started, m.Name)
			todo = append(todo, m)
		case apply && (before < 0 || n.Nodes[before].SHA256 != m.SHA256):
			done.Restarted = append(done.Restarted, m.Name)
			todo = append(todo, m)
		default:
			done.Left = append(done.Left, m.Name)
		}
	}
	for _, o := range n.Nodes {
		if apply && !lists(p.Nodes, o.Name) {
			done.Ended = append(done.Ended, o.Name)
		}
	}
	return todo, nil
}

// next returns the new record of the network. Nodes that have not changed keep their old entries.
func (n *Network) next(p Plan, apply bool, done *Change) manifest {
	next := n.manifest
	next.Nodes = slices.Clone(p.Nodes)
	for _, o := range n.Nodes {
		i := slices.IndexFunc(next.Nodes, func(m Member) bool { return m.Name == o.Name })
		switch {
		case i < 0 && !apply:
			next.Nodes = append(next.Nodes, o) // its process may still be running
		case i >= 0 && slices.Contains(done.Left, o.Name):
			if next.Nodes[i].SHA256 != o.SHA256 {
				done.Stale = append(done.Stale, o.Name)
			}
			next.Nodes[i] = o
		}
	}
	slices.SortFunc(next.Nodes, byName)
	return next
}

// withdraw removes a network that failed to start, unless one of its nodes is running. It stops the
// nodes on other machines.
func (n *Network) withdraw(ctx context.Context, p Plan) error {
	if len(n.Machines) > 0 {
		if _, err := n.down(ctx); err != nil {
			return err
		}
		return os.RemoveAll(n.dir) // also removes the logs: the error contains their last lines
	}
	for _, m := range p.Nodes {
		if _, held := n.process(m.Name).holder(); held {
			return nil
		}
	}
	_ = os.RemoveAll(n.dir)
	return nil
}

// startAll starts nodes concurrently. If one fails, it stops the others.
func (n *Network) startAll(ctx context.Context, p Plan, nodes []Member) error {
	var started []*child
	var failures []error
	for _, group := range n.processes(nodes) {
		c, err := n.start(p, group)
		if c != nil {
			started = append(started, c)
		}
		if err != nil {
			failures = append(failures, err)
			break
		}
	}
	if len(failures) == 0 { // if any failed, the code below stops the nodes
		failures = awaitAll(ctx, started)
	}
	if len(failures) == 0 {
		return nil
	}
	for _, c := range started {
		for _, m := range c.nodes {
			_, err := n.process(m.Name).stop(context.WithoutCancel(ctx))
			failures = append(failures, err)
		}
		select {
		case <-c.ended:
		default:
			_ = c.cmd.Process.Kill() // the process holds no lock
			<-c.ended
		}
	}
	return errors.Join(failures...)
}

// awaitAll waits until nodes answer, and returns the error of each that does not.
func awaitAll(ctx context.Context, started []*child) (failures []error) {
	for _, c := range started {
		if err := c.await(ctx); err != nil {
			failures = append(failures, err)
			if ctx.Err() != nil {
				break
			}
		}
	}
	return failures
}
