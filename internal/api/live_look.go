package api

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/tidepool-net/tidepool/internal/control"
)

// These are the events of the stream, besides Shape. A part of a node is sent when it has changed.
// The next Tick contains the time of the poll.
type (
	// Tick is the time of a poll, in milliseconds since 1970.
	Tick struct {
		At int64 `json:"at"`
	}
	// NodeLife says whether a node answers.
	NodeLife struct {
		Node    string `json:"node"`
		Up      bool   `json:"up"`
		Problem string `json:"problem,omitempty"`
		Router  bool   `json:"router"`
	}
	// NodeIfaces contains a node's interfaces and their impairments.
	NodeIfaces struct {
		Node        string               `json:"node"`
		Interfaces  []control.Interface  `json:"interfaces"`
		Impairments []control.Impairment `json:"impairments"`
	}
	// NodeSockets contains a node's newest sockets. More is the number of other sockets.
	NodeSockets struct {
		Node    string           `json:"node"`
		Sockets []control.Socket `json:"sockets"`
		More    int              `json:"more"`
	}
	// NodeRoutes contains a node's routes.
	NodeRoutes struct {
		Node   string          `json:"node"`
		Routes []control.Route `json:"routes"`
	}
	// NodeNeighbors contains a node's neighbors.
	NodeNeighbors struct {
		Node      string             `json:"node"`
		Neighbors []control.Neighbor `json:"neighbors"`
	}
	// NodeRIP contains the state of a node's routing protocol.
	NodeRIP struct {
		Node string          `json:"node"`
		RIP  control.RIPInfo `json:"rip"`
	}
	// NodeNATs contains the NATs of a node's interfaces, each with its first sessions.
	NodeNATs struct {
		Node string        `json:"node"`
		NATs []control.NAT `json:"nats"`
	}
	// NodeTold is an event of a node.
	NodeTold struct {
		Node  string        `json:"node"`
		At    int64         `json:"at"` // milliseconds since 1970
		Event string        `json:"event"`
		Data  control.Event `json:"data"`
	}
	// Look is a sample of a connection.
	Look struct {
		Node   string          `json:"node"`
		SID    int             `json:"sid"`
		Sample *control.Sample `json:"sample,omitempty"`
		// Over says why no more samples follow. It is empty if more may follow.
		Over string `json:"over,omitempty"`
	}
	// Segments are consecutive segments of a connection as a node captured them.
	Segments struct {
		// Of is the followed connection, NODE/SID.
		Of   string `json:"of"`
		Node string `json:"node"`
		// SID is -1 if the node is on the path of the connection and dropped the segments.
		SID      int                     `json:"sid"`
		Segments []control.TracedSegment `json:"segments"`
	}
)

// poll starts polling until ctx ends. The caller holds the lock.
func (h *feed) poll(ctx context.Context) {
	h.done.Go(func() {
		every := time.NewTicker(pollTime)
		defer every.Stop()
		looks := map[*member]context.CancelFunc{}
		for now := h.nodes.now.Load(); ctx.Err() == nil; now = h.nodes.now.Load() {
			h.updatePolls(ctx, now, looks)
			for looks, here := 0, true; here; looks++ {
				if now.shape == nil && looks%int(slowTime/pollTime) == 0 {
					// A reload can change a node's links.
					if shape, whole := now.shapeNow(ctx); whole {
						h.set(ctx, "network", "network", shape)
					}
				}
				h.set(ctx, "tick", "tick", Tick{time.Now().UnixMilli()})
				select {
				case <-ctx.Done():
					return
				case <-now.over:
					here = false
				case <-every.C:
				}
			}
		}
	})
}

// updatePolls stops polling removed nodes and starts polling new ones. It sends the network before
// the parts of its nodes.
func (h *feed) updatePolls(ctx context.Context, now *served, looks map[*member]context.CancelFunc) {
	for m, stop := range looks {
		if now.members[m.name] != m {
			stop()
			h.drop(ctx, append(parts(m.name), m.name+" life"))
			delete(looks, m)
		}
	}
	shape, _ := now.shapeNow(ctx)
	h.set(ctx, "network", "network", shape)
	for _, m := range now.members {
		if looks[m] == nil {
			var looking context.Context
			looking, looks[m] = context.WithCancel(ctx)
			h.done.Go(func() { h.pollNode(looking, m.name, m.op) })
			h.done.Go(func() { h.watchEvents(looking, m.name, m.op) })
		}
	}
}

func parts(name string) []string {
	return []string{
		name + " faces", name + " sockets", name + " routes", name + " neighbors", name + " rip",
		name + " nats",
	}
}

func (h *feed) pollNode(ctx context.Context, name string, op control.Operator) {
	every := time.NewTicker(pollTime)
	defer every.Stop()
	var slow time.Time
	for {
		now := time.Now()
		often := now.Sub(slow) < slowTime-pollTime/2
		if !often {
			slow = now
		}
		life := NodeLife{Node: name, Up: true}
		if err := h.ask(ctx, &life, op, often); err != nil {
			if ctx.Err() != nil {
				return
			}
			life = NodeLife{Node: name, Problem: err.Error()}
			slow = time.Time{}
			h.drop(ctx, parts(name))
		}
		if !often || !life.Up {
			h.set(ctx, name+" life", "life", life)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// ask polls a node once. If often is set, it requests only what changes often.
func (h *feed) ask(ctx context.Context, life *NodeLife, op control.Operator, often bool) error {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	name := life.Node
	var err error
	faces := get(ctx, op, control.Interfaces{}, &err)
	ways := get(ctx, op, control.Impairments{}, &err)
	sockets := get(ctx, op, control.Sockets{Info: true}, &err)
	if err != nil {
		return err
	}
	h.set(whole, name+" faces", "interfaces", NodeIfaces{name, faces, ways})
	all := len(sockets)
	// Half-open connections have no number, so they count only in More. The newest sockets are
	// shown, because the user has probably just opened them.
	sockets = slices.DeleteFunc(sockets, func(s control.Socket) bool { return s.SID < 0 })
	sockets = sockets[max(0, len(sockets)-mostSockets):]
	h.set(whole, name+" sockets", "sockets", NodeSockets{name, sockets, all - len(sockets)})
	if often {
		return nil
	}
	life.Router = get(ctx, op, control.About{}, &err).Forwarding
	routes := get(ctx, op, control.Routes{}, &err)
	neighbors := get(ctx, op, control.Neighbors{}, &err)
	rip := get(ctx, op, control.RIP{}, &err)
	nats := get(ctx, op, control.NATs{}, &err)
	if err != nil {
		return err
	}
	h.set(whole, name+" routes", "routes", NodeRoutes{name, routes})
	h.set(whole, name+" neighbors", "neighbors", NodeNeighbors{name, neighbors})
	h.set(whole, name+" rip", "rip", NodeRIP{name, rip})
	for i := range nats {
		nats[i].Sessions = nats[i].Sessions[:min(len(nats[i].Sessions), mostSessions)]
	}
	h.set(whole, name+" nats", "nats", NodeNATs{name, nats})
	return nil
}

// get returns the answer to a request. It does nothing if an earlier request failed.
func get[A any](ctx context.Context, op control.Operator, r control.Request[A], err *error) (a A) {
	if *err == nil {
		a, *err = control.Ask(ctx, op, r)
	}
	return a
}

// watchEvents passes on a node's events, except for segments, datagrams and RIP events.
func (h *feed) watchEvents(ctx context.Context, name string, op control.Operator) {
	f := func(e control.Event) {
		switch e.(type) {
		case control.Segment, control.Datagram, control.RIPNews:
			return
		}
		h.addEvent(NodeTold{name, time.Now().UnixMilli(), e.Event(), e})
	}
	c, remote := op.(*Client)
	if !remote {
		stop := op.Watch(f)
		<-ctx.Done()
		stop()
		return
	}
	path := "/nodes/" + url.PathEscape(name) + "/events"
	for ctx.Err() == nil {
		if resp, err := c.send(ctx, http.MethodGet, path, typeEvents, nil); err == nil {
			listen(resp.Body, f)
			_ = resp.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(slowTime):
		}
	}
}
