// Package netctl keeps whole networks: a process for each node, and one folder with what there is
// to know of them. It starts and ends processes, tells which are alive, and finds their sockets;
// what a node is asked goes through package api.
//
// A network's folder holds network.json (which nodes, from which files), and of each node a socket,
// a log, and a file with its process's number that the process keeps locked. The lock goes with the
// process whatever ends it, so nothing that a crash leaves is taken for life: a node is up if it
// answers at its socket, hung if it only holds its lock, else dead.
//
// A command that is killed on its way leaves what the next one goes on with: the record is there
// before a node is started, and until the last of them has ended. What may fail for want of room is
// written first, beside its place.
package netctl

import (
	"context"
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

	"github.com/tidepool-net/tidepool/internal/files"
)

// Errors of this package, wrapped with what they are about.
var (
	// ErrUsage: what was asked for cannot be, whatever runs.
	ErrUsage = errors.New("not usable")
	// ErrNoNetwork: no network has that name, or there is none at all.
	ErrNoNetwork = errors.New("no such network")
	// ErrNoNode: no node that runs has that name.
	ErrNoNode = errors.New("no such node")
	// ErrAmbiguous: more than one is meant.
	ErrAmbiguous = errors.New("ambiguous")
	// ErrBusy: another command works on that network just now.
	ErrBusy = errors.New("another command is changing it")
	// ErrTaken: a network of that name runs from other files.
	ErrTaken = errors.New("a network with that name already exists")
)

// State is the folder with the networks of one user.
type State struct {
	root    string
	missing bool
}

// Folder is its path.
func (s *State) Folder() string { return s.root }

// MakeState is OpenState of a folder that it makes if it is not there.
func MakeState(root string) (*State, error) {
	if root != "" {
		if err := os.MkdirAll(root, 0o700); err != nil {
			if info, e := os.Stat(root); e == nil && !info.IsDir() {
				err = fmt.Errorf("%w: %w", ErrUsage, err)
			}
			return nil, fmt.Errorf("state folder: %w; choose another with --state", err)
		}
	}
	return OpenState(root)
}

// OpenState opens the folder. One that is not there has no networks. One that others could write to
// is refused: they could put sockets of their own there.
func OpenState(root string) (*State, error) {
	if root == "" {
		return nil, fmt.Errorf("state folder: %w: empty; choose one with --state", ErrUsage)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(root)
	if errors.Is(err, fs.ErrNotExist) {
		return &State{root: root, missing: true}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state folder: %w; choose another with --state", err)
	}
	if fault := foreign(info); fault != "" {
		return nil, fmt.Errorf("state folder %s: %w: %s; choose another with --state", root,
			ErrUsage, fault)
	}
	return &State{root: root}, nil
}

// manifest is what network.json holds.
type manifest struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"` // the folder or file that it was made from
	Started time.Time `json:"started"`
	Nodes   []Member  `json:"nodes"`
}

// Member is a node of a network.
type Member struct {
	Name string `json:"name"`
	File string `json:"file"`
	// SHA256 is that of the file when the node was started.
	SHA256 string `json:"sha256,omitempty"`
	// Text is what the file is to hold, in the network's own folder; nil: it is where File says.
	Text []byte `json:"-"`
}

const manifestName = "network.json"

// Network is one network that was brought up and not down again.
type Network struct {
	dir string
	manifest
}

// Name is the network's name.
func (n *Network) Name() string { return n.manifest.Name }

// Source is the folder or file that the network was made from.
func (n *Network) Source() string { return n.manifest.Source }

// Members are the nodes, by name.
func (n *Network) Members() []Member { return slices.Clone(n.manifest.Nodes) }

// Dir is the network's folder.
func (n *Network) Dir() string { return n.dir }

// Socket is the path of a node's socket.
func (n *Network) Socket(node string) string { return n.process(node).socket() }

// names are what may name a network or a node here: a file's name everywhere, and no path.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// CheckName reports why something cannot have a name; nil: it can.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("name %q: %w: must be letters, digits, dots, - and _", name, ErrUsage)
	}
	return nil
}

// Networks are those of the folder, by name. What is no network is passed over.
func (s *State) Networks() ([]*Network, error) {
	if s.missing {
		return nil, nil
	}
	entries, err := os.ReadDir(s.root)
	if err != nil {
		return nil, fmt.Errorf("state folder: %w", err)
	}
	var list []*Network
	for _, e := range entries {
		if !e.IsDir() {
			continue // a lock
		}
		n, err := s.load(e.Name())
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			list = append(list, n)
		}
	}
	return list, nil
}

// load reads a network's manifest.
func (s *State) load(name string) (*Network, error) {
	n := &Network{dir: filepath.Join(s.root, name)}
	path := filepath.Join(n.dir, manifestName)
	text, err := files.Text(path, files.MaxText)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &n.manifest); err != nil {
		return nil, fmt.Errorf("%s: %w (remove the folder if its nodes have stopped)", path, err)
	}
	return n, nil
}

// draft writes a manifest that is to be the network's: a full disk is met before anything changes.
func (n *Network) draft(m manifest) (*drafted, error) {
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return nil, err
	}
	return draft(filepath.Join(n.dir, manifestName), append(text, '\n'))
}

// Network finds a network by its name; the empty name is the only one there is.
func (s *State) Network(name string) (*Network, error) {
	list, err := s.Networks()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, n := range list {
		if n.Name() == name {
			return n, nil
		}
		all = append(all, n.Name())
	}
	switch {
	case name == "" && len(list) == 1:
		return list[0], nil
	case len(list) == 0:
		return nil, fmt.Errorf("%w%s: no network is up in %s; start one with `node net up FOLDER`",
			ErrNoNetwork, called(name), s.root)
	case name == "":
		return nil, fmt.Errorf("%w: choose one of %s", ErrAmbiguous, strings.Join(all, ", "))
	}
	return nil, fmt.Errorf("%w%s: the networks are %s", ErrNoNetwork, called(name),
		strings.Join(all, ", "))
}

func called(name string) string {
	if name == "" {
		return ""
	}
	return " called " + name
}

// Target is a node that can be asked.
type Target struct {
	Network string // empty: of none that we know
	Node    string
	Socket  string
}

// Find finds a node by NODE or NETWORK/NODE. It may be dead.
func (s *State) Find(ref string) (Target, error) {
	list, err := s.Networks()
	if err != nil {
		return Target{}, err
	}
	network, node, full := strings.Cut(ref, "/")
	if !full {
		network, node = "", ref
	}
	var found []Target
	var all, where []string
	for _, n := range list {
		for _, m := range n.Nodes {
			all = append(all, n.Name()+"/"+m.Name)
			if m.Name == node && (!full || n.Name() == network) {
				found = append(found, Target{n.Name(), m.Name, n.Socket(m.Name)})
				where = append(where, n.Name()+"/"+m.Name)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Target{}, fmt.Errorf("%s: %w: %s", ref, ErrAmbiguous, strings.Join(where, ", "))
	case len(all) == 0:
		return Target{}, fmt.Errorf("%s: %w: no network is up in %s; start one with "+
			"`node net up FOLDER`", ref, ErrNoNode, s.root)
	}
	const most = 12
	if len(all) > most {
		all = append(all[:most], "and more")
	}
	return Target{}, fmt.Errorf("%s: %w: the nodes are %s", ref, ErrNoNode, strings.Join(all, ", "))
}

// enter takes the network's lock, so that two commands do not work on it at once.
func (s *State) enter(ctx context.Context, name string) (leave func(), err error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	path := filepath.Join(s.root, "."+name+".lock")
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("state folder: %w", err)
		}
		if !tryLock(f) {
			_ = f.Close()
			return nil, fmt.Errorf("network %s: %w", name, ErrBusy)
		}
		if isAt(f, path) {
			return func() {
				_ = os.Remove(path) // while it is ours: see isAt
				_ = f.Close()       // and the lock goes with it
			}, nil
		}
		_ = f.Close() // the command before has removed it between the two: take the next
	}
}

// isAt reports whether an open file is the one at a path.
func isAt(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(own, there)
}
