package netctl

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Status is the state of a network.
type Status struct {
	Name    string       `json:"name"`
	Source  string       `json:"source"`
	Folder  string       `json:"folder"` // directory of the logs and sockets
	Started time.Time    `json:"started"`
	Nodes   []NodeStatus `json:"nodes"`
	Hosts   []HostStatus `json:"hosts,omitempty"` // other machines
}

// HostStatus is the state of another machine.
type HostStatus struct {
	Name    string `json:"name"`
	SSH     string `json:"ssh"`               // destination for ssh
	Folder  string `json:"folder"`            // directory of the logs and sockets on the machine
	Problem string `json:"problem,omitempty"` // why the machine does not answer
}

// Well reports whether every node is up.
func (s Status) Well() bool {
	return !slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Life != Up })
}

// NodeStatus is the state of a node.
type NodeStatus struct {
	Name   string `json:"name"`
	Host   string `json:"host,omitempty"` // machine that has the node, its file and its log
	File   string `json:"file"`
	Life   Life   `json:"life"`
	PID    int    `json:"pid,omitempty"`
	Socket string `json:"socket"`
	Log    string `json:"log"`
	// Started is when the process started. It is zero if the node does not answer.
	Started time.Time `json:"started,omitzero"`
	// These are the numbers of interfaces and of neighbors: all of them, and those that are up.
	Interfaces   int `json:"interfaces"`
	InterfacesUp int `json:"interfaces_up"`
	Neighbors    int `json:"neighbors"`
	NeighborsUp  int `json:"neighbors_up"`
	// NeighborsDown counts the neighbors that are known to be unreachable: refused, silent, and so
	// on. It does not count neighbors whose state is not known yet.
	NeighborsDown int `json:"neighbors_down"`
	Routes        int `json:"routes"`
	Sockets       int `json:"sockets"`
	// LastLines is the end of the log of a node that does not answer. After a crash it is instead
	// the start of the dump, which contains the reason.
	LastLines []string `json:"last_lines,omitempty"`
	Crashed   bool     `json:"crashed,omitempty"`
}

// Status asks every node for its state.
func (n *Network) Status(ctx context.Context) Status {
	s := Status{
		Name: n.Name(), Source: n.Source(), Folder: n.dir, Started: n.Started,
		Nodes: make([]NodeStatus, len(n.Nodes)),
	}
	var wg sync.WaitGroup
	for i, m := range n.Nodes {
		wg.Go(func() { s.Nodes[i] = n.nodeStatus(ctx, m) })
	}
	parts := make([][]NodeStatus, len(n.Machines))
	s.Hosts = make([]HostStatus, len(n.Machines))
	for i, c := range n.connections() {
		wg.Go(func() { parts[i], s.Hosts[i] = c.status(ctx) })
	}
	wg.Wait()
	s.Nodes = append(s.Nodes, slices.Concat(parts...)...)
	slices.SortFunc(s.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Name, b.Name) })
	return s
}

func (c *connection) status(ctx context.Context) ([]NodeStatus, HostStatus) {
	host := HostStatus{Name: c.Name, SSH: c.SSH, Folder: path.Join(c.Folder, c.network.Name())}
	list := make([]NodeStatus, len(c.Nodes))
	for i, m := range c.Nodes {
		list[i] = NodeStatus{Name: m.Name, File: m.File, Life: Unreachable}
	}
	a, err := c.part(ctx, statusTime, PartRequest{Do: PartStatus})
	if err != nil {
		host.Problem = err.Error()
	}
	for i := range list {
		s := &list[i]
		if errors.As(err, new(*PartError)) {
			s.Life = Dead
		}
		if a.Status != nil {
			s.Life = Dead
			for _, is := range a.Status.Nodes {
				if is.Name == s.Name {
					*s = is
					s.Started = is.Started.Add(time.Since(a.Now)) // by this machine's clock
				}
			}
		}
		s.Host, s.Socket = c.Name, c.network.Socket(s.Name)
	}
	return list, host
}

func (n *Network) nodeStatus(ctx context.Context, m Member) NodeStatus {
	p := n.process(m.Name)
	s := NodeStatus{Name: m.Name, File: m.File, Socket: p.socket(), Log: p.log()}
	life, is := p.life(ctx)
	s.Life, s.PID, s.Started = life, is.PID, is.Started
	if life == Up && p.ask(ctx, &s) != nil {
		s.Life = Hung // the node may have just stopped; the next status shows that
	}
	if s.Life != Up {
		last := p.lastLogLines(deathLines, 0)
		s.LastLines, s.Crashed = last.lines, last.crashed
	}
	return s
}

// ask queries a node and fills in the answers.
func (p process) ask(ctx context.Context, s *NodeStatus) error {
	c, ctx, done := p.client(ctx, askTime)
	defer done()
	faces, err := control.Ask(ctx, control.Operator(c), control.Interfaces{})
	if err != nil {
		return err
	}
	neighbors, err := control.Ask(ctx, control.Operator(c), control.Neighbors{})
	if err != nil {
		return err
	}
	routes, err := control.Ask(ctx, control.Operator(c), control.Routes{})
	if err != nil {
		return err
	}
	sockets, err := control.Ask(ctx, control.Operator(c), control.Sockets{})
	if err != nil {
		return err
	}
	s.Interfaces, s.Neighbors = len(faces), len(neighbors)
	s.Routes, s.Sockets = len(routes), len(sockets)
	for _, f := range faces {
		if f.Up && f.Problem == "" {
			s.InterfacesUp++
		}
	}
	for _, nb := range neighbors {
		switch nb.State {
		case control.NeighborUp, control.NeighborReachable:
			s.NeighborsUp++
		case control.NeighborSilent, control.NeighborRefused, control.NeighborUnreachable,
			control.NeighborUnresolved:
			s.NeighborsDown++
		case control.NeighborUnknown, control.NeighborStale, control.NeighborDelay,
			control.NeighborProbe, "":
		}
	}
	return nil
}
