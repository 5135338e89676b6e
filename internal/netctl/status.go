package netctl

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// Status is the state of a network.
type Status struct {
	Name    string       `json:"name"`
	Source  string       `json:"source"`
	Folder  string       `json:"folder"` // the directory of the logs and sockets
	Started time.Time    `json:"started"`
	Nodes   []NodeStatus `json:"nodes"`
}

// Well reports whether every node is up.
func (s Status) Well() bool {
	return !slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return n.Life != Up })
}

// NodeStatus is the state of a node.
type NodeStatus struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Life   Life   `json:"life"`
	PID    int    `json:"pid,omitempty"`
	Socket string `json:"socket"`
	Log    string `json:"log"`
	// Started is when the process started; zero if it does not answer.
	Started time.Time `json:"started,omitzero"`
	// How many interfaces there are and are up, and how many neighbors with a known state.
	Interfaces   int `json:"interfaces"`
	InterfacesUp int `json:"interfaces_up"`
	Neighbors    int `json:"neighbors"`
	NeighborsUp  int `json:"neighbors_up"`
	// NeighborsDown counts the neighbors that are known to be unreachable: refused, silent, and so
	// on. The state of the others is not known yet.
	NeighborsDown int `json:"neighbors_down"`
	Routes        int `json:"routes"`
	Sockets       int `json:"sockets"`
	// LastLines is the end of the log of a node that does not answer. After a crash it is the start
	// of the dump, which contains the reason.
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
	wg.Wait()
	return s
}

func (n *Network) nodeStatus(ctx context.Context, m Member) NodeStatus {
	p := n.process(m.Name)
	s := NodeStatus{Name: m.Name, File: m.File, Socket: p.socket(), Log: p.log()}
	life, is := p.life(ctx)
	s.Life, s.PID, s.Started = life, is.PID, is.Started
	if life == Up && p.ask(ctx, &s) != nil {
		s.Life = Hung // it may have just stopped; the next status shows it
	}
	if s.Life != Up {
		last := p.lastWords(deathLines, 0)
		s.LastLines, s.Crashed = last.lines, last.crashed
	}
	return s
}

// ask fills in a node's answers.
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
