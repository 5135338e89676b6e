package iperf

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/node"
)

// Host runs a node's tests, as a client and with any number of servers.
type Host struct {
	control.Handlers
	node *node.Node
	name string // name of the node, for reports

	mu      sync.Mutex
	servers map[*server]struct{}
}

// New returns a Host for a node with the given name. The Host has no servers yet.
func New(n *node.Node, name string) *Host {
	h := &Host{
		Handlers: control.Handlers{}, node: n, name: name, servers: map[*server]struct{}{},
	}
	control.Handle(h.Handlers, h.measure)
	control.Handle(h.Handlers, h.serve)
	control.Handle(h.Handlers, h.list)
	control.HandleOrder(h.Handlers, h.close)
	return h
}

func (h *Host) list(context.Context, control.PerfServers) ([]control.PerfServed, error) {
	list := []control.PerfServed{}
	for _, s := range h.open() {
		list = append(list, s.describe())
	}
	return list, nil
}

func (h *Host) open() []*server {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Keys(h.servers), func(a, b *server) int {
		return cmp.Compare(a.req.Port, b.req.Port)
	})
}

func (h *Host) enter(s *server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.servers[s] = struct{}{}
}

func (h *Host) forget(s *server) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.servers, s)
}

// close ends the server of a port. The port is free when close returns.
func (h *Host) close(_ context.Context, r control.PerfClose) error {
	r.Port = cmp.Or(r.Port, control.PerfPort)
	for _, s := range h.open() {
		if s.req.Port == r.Port {
			s.cancel()
			<-s.closed
			return nil
		}
	}
	return fmt.Errorf("perf: port %d: %w", r.Port, control.ErrNoSuchSocket)
}
