package api

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/tidepool-net/tidepool/internal/control"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// Shape is how the nodes of a server are connected.
type Shape struct {
	Name  string      `json:"name"` // name of the network; may be empty
	Nodes []ShapeNode `json:"nodes"`
	Links []ShapeLink `json:"links"`
}

// ShapeOf returns the shape of a network's graph.
func ShapeOf(g *topology.Graph) *Shape {
	s := &Shape{Name: g.Title, Nodes: []ShapeNode{}, Links: []ShapeLink{}}
	for _, v := range g.Nodes {
		s.Nodes = append(s.Nodes, ShapeNode{Name: v.Name, Router: v.Router})
	}
	for i := range g.Links {
		l := ShapeLink{Subnet: g.Links[i].Subnet}
		for _, end := range g.Links[i].Ends {
			l.Ends = append(l.Ends, ShapeEnd{
				Node: g.Nodes[end.Node].Name, Iface: end.Iface, Addr: end.Addr,
			})
		}
		s.Links = append(s.Links, l)
	}
	return s
}

// ShapeNode is a node.
type ShapeNode struct {
	Name   string `json:"name"`
	Router bool   `json:"router"`
}

// ShapeLink is a link with the interfaces that it connects.
type ShapeLink struct {
	Subnet netip.Prefix `json:"subnet"` // subnet of the ends' first addresses; may be empty
	Ends   []ShapeEnd   `json:"ends"`
}

// ShapeEnd is an interface of a link.
type ShapeEnd struct {
	Node  string     `json:"node"`
	Iface string     `json:"iface"`
	Addr  netip.Addr `json:"addr"` // first address; IPv4 if the interface has both families
}

// network returns the shape from the nodes' files. Without files it queries the nodes, and the
// other end of a link may be unknown.
func (n *nodes) network(w http.ResponseWriter, r *http.Request) error {
	shape, _ := n.now.Load().shapeNow(r.Context())
	return answer(w, http.StatusOK, typeJSON, shape)
}

// shapeNow returns the shape. If a node did not answer, its links are missing and whole is false.
func (v *served) shapeNow(ctx context.Context) (shape Shape, whole bool) {
	if v.shape != nil {
		return *v.shape, true
	}
	shape, whole = Shape{Nodes: []ShapeNode{}, Links: []ShapeLink{}}, true
	links := map[netip.Prefix]int{}
	for _, name := range v.names {
		n := ShapeNode{Name: name}
		ctx, cancel := context.WithTimeout(ctx, askTime)
		if about, err := control.Ask(ctx, v.members[name].op, control.About{}); err == nil {
			n.Router = about.Forwarding
		}
		faces, err := control.Ask(ctx, v.members[name].op, control.Interfaces{})
		cancel()
		whole = whole && err == nil // a stopped node has no links
		shape.Nodes = append(shape.Nodes, n)
		for i := range faces {
			f := &faces[i]
			subnet := f.Addrs()[0].Masked()
			at, ok := links[subnet]
			if !ok {
				at = len(shape.Links)
				links[subnet] = at
				shape.Links = append(shape.Links, ShapeLink{Subnet: subnet})
			}
			end := ShapeEnd{Node: name, Iface: f.Name, Addr: f.Addrs()[0].Addr()}
			shape.Links[at].Ends = append(shape.Links[at].Ends, end)
		}
	}
	return shape, whole
}
