package playground

import (
	"github.com/tidepool-net/tidepool/internal/api"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// shapeOf returns how the page draws a network.
func shapeOf(g *topology.Graph) *api.Shape {
	s := &api.Shape{Name: g.Title, Nodes: []api.ShapeNode{}, Links: []api.ShapeLink{}}
	for _, v := range g.Nodes {
		s.Nodes = append(s.Nodes, api.ShapeNode{Name: v.Name, Router: v.Router})
	}
	for i := range g.Links {
		l := api.ShapeLink{Subnet: g.Links[i].Subnet}
		for _, end := range g.Links[i].Ends {
			l.Ends = append(l.Ends, api.ShapeEnd{
				Node: g.Nodes[end.Node].Name, Iface: end.Iface, Addr: end.Addr,
			})
		}
		s.Links = append(s.Links, l)
	}
	return s
}
