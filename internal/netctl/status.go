package netctl

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Status is a network as it is.
type Status struct {
	Name    string       `json:"name"`
	Source  string       `json:"source"`
	Folder  string       `json:"folder"` // with the logs and sockets
	Started time.Time    `json:"started"`
	Nodes   []NodeStatus `json:"nodes"`
}

// Well reports whether every node is up.
func (s Status) Well() bool {
	return !slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Life != Up })
}

// NodeStatus is a node as it is.
type NodeStatus struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Life   Life   `json:"life"`
	PID    int    `json:"pid,omitempty"`
	Socket string `json:"socket"`
	Log    string `json:"log"`
	// Started is when the process began; zero of one that does not answer.
	Started time.Time `json:"started,omitzero"`
	// Of the interfaces, and of the neighbors that can be told of, how many are up.
	Interfaces   int `json:"interfaces"`
	InterfacesUp int `json:"interfaces_up"`
	Neighbors    int `json:"neighbors"`
	NeighborsUp  int `json:"neighbors_up"`
	// NeighborsDown are those that are known not to be there: refused, silent, and so on. Of the
	// others nothing has been heard or missed yet.
	NeighborsDown int `json:"neighbors_down"`
	Routes        int `json:"routes"`
	Sockets       int `json:"sockets"`
	// LastLines are the end of the log of a node that does not answer; of one that crashed they
	// are where the dump begins, which says why.
	LastLines []string `json:"last_lines,omitempty"`
	Crashed   bool     `json:"crashed,omitempty"`
}

// Status asks every node how it is.
func (n *Network) Status(ctx context.Context) Status {
	s := Status{
		Name: n.Name(), Source: n.Source(), Folder: n.dir, Started: n.Started,
		Nodes: make([]NodeStatus, len(n.Nodes)),
	}
	var wg sync.WaitGroup
	for i, m := range n.Nodes {
		wg.Go(func() { s.Nodes[i] = n.nodeStatus(ctx, m) })
	}
	wg.Wait()
	return s
}

func (n *Network) nodeStatus(ctx context.Context, m Member) NodeStatus {
	p := n.process(m.Name)
	s := NodeStatus{Name: m.Name, File: m.File, Socket: p.socket(), Log: p.log()}
	life, is := p.life(ctx)
	s.Life, s.PID, s.Started = life, is.PID, is.Started
	if life == Up && p.ask(ctx, &s) != nil {
		s.Life = Hung // or it ended just now: the next look says
	}
	if s.Life != Up {
		last := p.lastWords(deathLines, 0)
		s.LastLines, s.Crashed = last.lines, last.crashed
	}
	return s
}

// ask fills in what a node says of itself.
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
		case control.NeighborUp:
			s.NeighborsUp++
		case control.NeighborSilent, control.NeighborRefused, control.NeighborUnreachable,
			control.NeighborUnresolved:
			s.NeighborsDown++
		case control.NeighborUnknown, "":
		}
	}
	return nil
}
