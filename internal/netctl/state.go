// Package netctl manages whole networks: one process for each node, or one for all, and a directory
// with the state. It starts and stops the processes, determines which are running, and finds their
// sockets. Requests to nodes use package api.
//
// A network's directory contains network.json, which lists the nodes and their files. For each node
// it contains a socket, a log, and a PID file, which the node's process keeps locked. The lock
// disappears with the process, so the files that a crash leaves never look like a running node. A
// node is up if it answers at its socket, hung if it only holds its lock, and otherwise dead. Nodes
// in one process share its log and its lock, and start and stop together.
//
// A command can be interrupted and the next one continues: the record exists before the first node
// starts, and until the last one has stopped. New files are first written under temporary names,
// because the disk may be full.
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

// These errors are wrapped with the network or node that they concern.
var (
	// ErrUsage means that the request is invalid.
	ErrUsage = errors.New("invalid")
	// ErrNoNetwork means that no network has that name, or that no network exists.
	ErrNoNetwork = errors.New("no such network")
	// ErrNoNode means that no running node has that name.
	ErrNoNode = errors.New("no such node")
	// ErrAmbiguous means that several networks or nodes match.
	ErrAmbiguous = errors.New("ambiguous name")
	// ErrBusy means that another command is changing the network.
	ErrBusy = errors.New("another command is changing this network")
	// ErrTaken means that a network with that name is running from other files.
	ErrTaken = errors.New("a network with that name already exists")
)

// State is the directory of one user's networks.
type State struct {
	root    string
	missing bool
}

// Folder returns the path of the directory.
func (s *State) Folder() string { return s.root }

// MakeState is OpenState, but creates the directory if it does not exist.
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

// OpenState opens the directory. A directory that does not exist has no networks. Other users must
// not be able to write to the directory, because they could create sockets in it.
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

type manifest struct {
	Name    string    `json:"name"`
	Source  string    `json:"source"` // directory or file that describes the nodes
	Started time.Time `json:"started"`
	Nodes   []Member  `json:"nodes"` // the nodes on this machine
	// OneProcess says that the nodes of each machine run in one process.
	OneProcess bool `json:"one_process,omitempty"`
	// Machines are the other machines, with their nodes.
	Machines []Machine `json:"machines,omitempty"`
}

// Member is a node of a network.
type Member struct {
	Name string `json:"name"`
	File string `json:"file"`
	Host string `json:"host,omitempty"` // name of the machine; empty: this machine
	// SHA256 is the digest of the file that the node was started with.
	SHA256 string `json:"sha256,omitempty"`
	// Text is the content of a generated file in the network's directory; nil: File exists.
	Text []byte `json:"-"`
}

const manifestName = "network.json"

// Network is a network that has been started and not stopped.
type Network struct {
	dir string
	manifest
}

// Name returns the network's name.
func (n *Network) Name() string { return n.manifest.Name }

// Source returns the directory or file that describes the network's nodes.
func (n *Network) Source() string { return n.manifest.Source }

// Members returns the nodes, sorted by name.
func (n *Network) Members() []Member {
	list := slices.Clone(n.manifest.Nodes)
	for _, m := range n.Machines {
		list = append(list, m.Nodes...)
	}
	slices.SortFunc(list, byName)
	return list
}

func lists(nodes []Member, name string) bool {
	return slices.ContainsFunc(nodes, func(m Member) bool { return m.Name == name })
}

func byName(a, b Member) int { return strings.Compare(a.Name, b.Name) }

// Dir returns the network's directory.
func (n *Network) Dir() string { return n.dir }

// Socket returns the path of a node's socket.
func (n *Network) Socket(node string) string { return n.process(node).socket() }

// names matches valid names of networks and nodes. They are valid file names on every system.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// CheckName returns an error if a name is invalid.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("name %q: %w: must be letters, digits, dots, - and _", name, ErrUsage)
	}
	return nil
}

// Networks returns the networks of the directory, sorted by name. It ignores all other files there.
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
			continue // the file is a lock
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

func (n *Network) save(m manifest) error {
	d, err := n.draft(m)
	if err != nil {
		return err
	}
	return d.keep()
}

// draft writes a manifest under a temporary name, so that a full disk changes nothing.
func (n *Network) draft(m manifest) (*drafted, error) {
	text, err := json.MarshalIndent(m, "", "\t")
	if err != nil {
		return nil, err
	}
	return draft(filepath.Join(n.dir, manifestName), append(text, '\n'))
}

// Network finds a network by name. An empty name finds the only network.
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
		return nil, fmt.Errorf("%w: none is up in %s; start one with `node net up FOLDER`",
			missing(name), s.root)
	case name == "":
		return nil, fmt.Errorf("%w: several networks are up: choose one of %s", ErrAmbiguous,
			strings.Join(all, ", "))
	}
	return nil, fmt.Errorf("%w: the networks are %s", missing(name), strings.Join(all, ", "))
}

func missing(name string) error {
	if name == "" {
		return ErrNoNetwork
	}
	return fmt.Errorf("%s: %w", name, ErrNoNetwork)
}

// Target is a node with its socket.
type Target struct {
	Network string // name of the network; empty: unknown
	Node    string
	Socket  string
	Host    string // name of the machine; empty: this machine
}

// Find finds a node by NODE or NETWORK/NODE. The node need not be running.
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
		for _, m := range n.Members() {
			all = append(all, n.Name()+"/"+m.Name)
			if m.Name == node && (!full || n.Name() == network) {
				found = append(found, Target{n.Name(), m.Name, n.Socket(m.Name), m.Host})
				where = append(where, n.Name()+"/"+m.Name)
			}
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return Target{}, fmt.Errorf("%s: %w: use one of %s", ref, ErrAmbiguous,
			strings.Join(where, ", "))
	case strings.HasPrefix(ref, ".") || filepath.IsAbs(ref):
		return Target{}, fmt.Errorf("%s: %w: no node's socket is there", ref, ErrNoNode)
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

// enter locks the network, so that only one command changes it at a time.
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
				_ = os.Remove(path) // removed while this process still holds the lock: see isAt
				_ = f.Close()       // releases the lock
			}, nil
		}
		_ = f.Close() // the previous holder has removed the file, so try again
	}
}

func isAt(f *os.File, path string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(own, there)
}
