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

// Plan is a network that is to run.
type Plan struct {
	Name   string
	Source string // the folder or file that it is made from
	Nodes  []Member
	// Program is the executable of a node.
	Program string
	// Flags are those of `node run` that each node has beside the usual ones.
	Flags []string
	// Check, if set, looks whether nodes can be what their files say: those that are about to be
	// started, and those that run and are about to read theirs again. Its error keeps all as they
	// are.
	Check func(start, reload []Member) error
}

// Change is what was done to bring a network to what a plan says. Nodes are by name.
type Change struct {
	Network   *Network `json:"-"`
	Started   []string `json:"started"`   // nodes that did not run
	Reloaded  []string `json:"reloaded"`  // that read their other file and run on: see Apply
	Restarted []string `json:"restarted"` // whose other file only a new process can be
	// Why is, by the names of Restarted, what the running node could not become.
	Why   map[string][]string `json:"why,omitempty"`
	Ended []string            `json:"ended"` // that the plan has no more
	Left  []string            `json:"left"`  // that run as they are
	Stale []string            `json:"stale"` // of those, the ones whose file is another now
}

// MarshalJSON implements json.Marshaler: no list is null, and the network is by name.
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
		Folder  string `json:"folder"` // with the logs and sockets
		fields
	}{c.Network.Name(), c.Network.Source(), c.Network.Dir(), fields(c)})
}

// Up starts the nodes of a plan that do not run. If one of them cannot be started, none of them is
// left running.
func (s *State) Up(ctx context.Context, p Plan) (Change, error) { return s.bring(ctx, p, false) }

// Apply brings a network to what a plan says: nodes that are new are started, those whose file has
// changed read it again, or are started anew if they can be that in no other way, and those that
// are not in the plan end. Ports may go from any node to any other. If one cannot be what its file
// says, all stay as they were; behind the first that has ended that is no more so.
func (s *State) Apply(ctx context.Context, p Plan) (Change, error) { return s.bring(ctx, p, true) }

func (s *State) bring(ctx context.Context, p Plan, apply bool) (done Change, err error) {
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
			n.withdraw(p.Nodes)
		}
	}()
	done.Network = n
	todo, err := n.compare(ctx, p, apply, &done)
	if err != nil {
		return done, err
	}
	next := n.next(p, apply, &done)
	record, err := n.draft(next)
	if err != nil {
		return done, fmt.Errorf("network %s: %w", p.Name, err)
	}
	defer record.discard()
	own, err := draftFiles(todo)
	if err != nil {
		return done, fmt.Errorf("network %s: %w", p.Name, err)
	}
	defer own.discard()
	if fresh { // from here on the folder is known to be a network's
		if err := record.keep(); err != nil {
			return done, fmt.Errorf("network %s: %w", p.Name, err)
		}
		n.manifest = next
	}
	if err := own.try(); err != nil {
		return done, fmt.Errorf("network %s: %w", p.Name, err)
	}
	if todo, err = n.reloadAll(ctx, todo, &done, p.Check); err != nil {
		own.undo()
		return done, err
	}
	if err := n.replace(ctx, p, &done, todo, func() error {
		if fresh {
			return nil // it is kept
		}
		n.manifest = next
		return record.keep()
	}); err != nil {
		if apply && !fresh {
			err = &HalfwayError{cause: err, state: n.halfway(context.WithoutCancel(ctx), next, p)}
		}
		return done, err
	}
	return done, nil
}

// replace ends the nodes that are no more or are to be new ones, notes the network as it is then to
// be, and starts those of todo.
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

// digest notes what the files hold, judges the names and puts the nodes in their order.
func (p *Plan) digest(root string) (err error) {
	if err := CheckName(p.Name); err != nil {
		return fmt.Errorf("network %w; choose another with --name", err)
	}
	p.Nodes = slices.Clone(p.Nodes)
	slices.SortFunc(p.Nodes, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	for i := range p.Nodes {
		m := &p.Nodes[i]
		if err := CheckName(m.Name); err != nil {
			return fmt.Errorf("%s: %w", m.File, err)
		}
		n := Network{dir: filepath.Join(root, p.Name)}
		if err := api.CheckSocket(n.Socket(m.Name)); err != nil {
			return fmt.Errorf("%w: %w; choose a shorter --state", ErrUsage, err)
		}
		text := m.Text
		if text != nil {
			m.File = filepath.Join(root, p.Name, m.Name+".lnx")
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

// place finds the network of a plan, or makes its folder.
func (s *State) place(p Plan) (n *Network, fresh bool, err error) {
	n, err = s.load(p.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n = &Network{dir: filepath.Join(s.root, p.Name)}
		n.manifest = manifest{Name: p.Name, Source: p.Source, Started: time.Now().Round(0)}
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
	}
	return n, false, nil
}

// leavings are the names of what a network that was never recorded may have left.
var leavings = regexp.MustCompile(`^(\.s.*|.*\.(new|log|pid|sock))$`)

// vacant reports why a folder without a record cannot be the network's: what is in there is
// somebody's, and would go when the network does.
func (n *Network) vacant() error {
	list, err := os.ReadDir(n.dir)
	if err != nil {
		return fmt.Errorf("network %s: %w", n.Name(), err)
	}
	for _, e := range list {
		if !leavings.MatchString(e.Name()) {
			return fmt.Errorf("network %s: %w in %s: %s is there but is not a network; choose "+
				"another --state, or --name", n.Name(), ErrUsage, n.dir, e.Name())
		}
	}
	return nil
}

// compare finds out what has to be done, and returns the nodes to start.
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
		if !slices.ContainsFunc(p.Nodes, func(m Member) bool { return m.Name == o.Name }) && apply {
			done.Ended = append(done.Ended, o.Name)
		}
	}
	return todo, nil
}

// next is the network's record as a plan has it. What runs as it is keeps what it was started with.
func (n *Network) next(p Plan, apply bool, done *Change) manifest {
	next := n.manifest
	next.Nodes = slices.Clone(p.Nodes)
	for _, o := range n.Nodes {
		i := slices.IndexFunc(next.Nodes, func(m Member) bool { return m.Name == o.Name })
		switch {
		case i < 0 && !apply:
			next.Nodes = append(next.Nodes, o) // its file is gone, and it may run
		case i >= 0 && slices.Contains(done.Left, o.Name):
			if next.Nodes[i].SHA256 != o.SHA256 {
				done.Stale = append(done.Stale, o.Name)
			}
			next.Nodes[i] = o
		}
	}
	slices.SortFunc(next.Nodes, func(a, b Member) int { return strings.Compare(a.Name, b.Name) })
	return next
}

// withdraw removes a network that never was, unless one of its nodes runs nevertheless.
func (n *Network) withdraw(nodes []Member) {
	for _, m := range nodes {
		if _, held := n.process(m.Name).holder(); held {
			return
		}
	}
	_ = os.RemoveAll(n.dir)
}

// startAll starts nodes side by side. If one cannot start, those that could are ended.
func (n *Network) startAll(ctx context.Context, p Plan, nodes []Member) error {
	var started []*child
	var failures []error
	for _, m := range nodes {
		c, err := n.start(p, m)
		if c != nil {
			started = append(started, c)
		}
		if err != nil {
			failures = append(failures, err)
			break
		}
	}
	if len(failures) == 0 { // else they are told to end below
		failures = awaitAll(ctx, started)
	}
	if len(failures) == 0 {
		return nil
	}
	for _, c := range started {
		_, err := c.process.stop(context.WithoutCancel(ctx))
		failures = append(failures, err)
		select {
		case <-c.ended:
		default:
			_ = c.cmd.Process.Kill() // one that no lock tells of
			<-c.ended
		}
	}
	return errors.Join(failures...)
}

// awaitAll waits until nodes answer, and tells of each why it does not.
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
