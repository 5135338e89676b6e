package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Graph is the shape of a network as its files describe it.
type Graph struct {
	Title string
	Nodes []Vertex
	Links []Edge
}

// Vertex is a node.
type Vertex struct {
	Name   string
	Router bool
	// Down marks a node that is not running, in the picture of a running network.
	Down bool
}

// Edge is a link: interfaces that share a subnet or that a neighbor line connects.
type Edge struct {
	Subnet netip.Prefix // subnet of the link; invalid: none
	Ends   []Stub
}

// Stub is an interface at a link.
type Stub struct {
	Node  int
	Iface string
	Addr  netip.Addr
	Note  string // other information, such as a TUN device
}

// From returns the graph of a network's files, which must be valid on their own and together.
func From(title string, configs []*lnx.Config) *Graph {
	g := &Graph{Title: title}
	for _, c := range configs {
		g.Nodes = append(g.Nodes, Vertex{Name: c.Name, Router: c.Forwarding})
	}
	bySubnet := map[netip.Prefix]int{}
	for node, c := range configs {
		for i := range c.Interfaces {
			g.add(configs, node, &c.Interfaces[i], bySubnet)
		}
	}
	g.Links = slices.DeleteFunc(g.Links, func(e Edge) bool { return len(e.Ends) == 0 })
	return g
}

// add adds an interface to the link of earlier interfaces that share one of its subnets or, if
// there are none, are its neighbors. If these are on several links, add merges the links.
func (g *Graph) add(
	configs []*lnx.Config, node int, f *lnx.Interface, bySubnet map[netip.Prefix]int,
) {
	s := Stub{Node: node, Iface: f.Name, Addr: f.Addrs()[0].Addr()}
	if f.Tun != nil {
		s.Note = "tun:" + f.Tun.Device
	}
	// Every link has the prefix of link-local addresses.
	subnets := slices.DeleteFunc(slices.Clone(f.Addrs()), func(p netip.Prefix) bool {
		return p.IsSingleIP() || p.Addr().IsLinkLocalUnicast()
	})
	var links []int
	for _, p := range subnets {
		if known, found := bySubnet[p.Masked()]; found {
			links = append(links, known)
		}
	}
	if len(links) == 0 {
		links = g.facing(configs, node, f)
	}
	if len(links) == 0 {
		links = []int{len(g.Links)}
		g.Links = append(g.Links, Edge{})
	}
	e := &g.Links[links[0]]
	for _, other := range links[1:] {
		if other != links[0] {
			e.Ends = append(e.Ends, g.Links[other].Ends...)
			g.Links[other].Ends = nil
		}
	}
	e.Ends = append(e.Ends, s)
	if !e.Subnet.IsValid() && len(subnets) > 0 {
		e.Subnet = subnets[0].Masked()
	}
	for _, p := range subnets {
		bySubnet[p.Masked()] = links[0]
	}
}

// facing returns the links of the interfaces that a neighbor line connects with f, in their own
// files or in the file of node.
func (g *Graph) facing(configs []*lnx.Config, node int, f *lnx.Interface) (links []int) {
	for at, e := range g.Links {
		if slices.ContainsFunc(e.Ends, func(s Stub) bool {
			o, found := configs[s.Node].Interface(s.Iface)
			return found && s.Node != node && (configs[node].Describes(f, o) ||
				configs[s.Node].Describes(o, f))
		}) {
			links = append(links, at)
		}
	}
	return links
}

func (e *Edge) label() string {
	if e.Subnet.IsValid() {
		return e.Subnet.String()
	}
	return ""
}

// DOT returns the graph in Graphviz's language.
func (g *Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "graph %q {\n\tlayout=neato; overlap=false; splines=true\n", g.Title)
	for _, n := range g.Nodes {
		shape, style := "box", "rounded"
		if n.Router {
			shape = "ellipse"
		}
		if n.Down {
			style = "dashed"
		}
		fmt.Fprintf(&b, "\t%q [shape=%s, style=%q]\n", n.Name, shape, style)
	}
	for i := range g.Links {
		e := &g.Links[i]
		if len(e.Ends) == 2 {
			x, y := e.Ends[0], e.Ends[1]
			fmt.Fprintf(&b, "\t%q -- %q [label=%q, taillabel=%q, headlabel=%q]\n",
				g.Nodes[x.Node].Name, g.Nodes[y.Node].Name, e.label(), x.label(), y.label())
			continue
		}
		fmt.Fprintf(&b, "\t\"link %d\" [shape=plaintext, label=%q]\n", i, e.label())
		for _, s := range e.Ends {
			fmt.Fprintf(&b, "\t%q -- \"link %d\" [label=%q]\n", g.Nodes[s.Node].Name, i, s.label())
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func (s *Stub) label() string {
	return strings.Join(slices.DeleteFunc([]string{s.Iface, s.Addr.String(), s.Note},
		func(t string) bool { return t == "" }), " ")
}

// quotes escapes what would end a text in Mermaid.
var quotes = strings.NewReplacer(`"`, "#quot;")

// Mermaid returns the graph in Mermaid's language.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("graph LR\n")
	for i, n := range g.Nodes {
		open, end := "[", "]"
		if n.Router {
			open, end = "((", "))"
		}
		fmt.Fprintf(&b, "  n%d%s\"%s\"%s\n", i, open, quotes.Replace(n.Name), end)
	}
	for i := range g.Links {
		e := &g.Links[i]
		label := ""
		if e.label() != "" {
			label = "|\"" + e.label() + "\"|"
		}
		if len(e.Ends) == 2 {
			fmt.Fprintf(&b, "  n%d ---%s n%d\n", e.Ends[0].Node, label, e.Ends[1].Node)
			continue
		}
		fmt.Fprintf(&b, "  l%d{{\"%s\"}}\n", i, e.label())
		for _, s := range e.Ends {
			fmt.Fprintf(&b, "  n%d --- l%d\n", s.Node, i)
		}
	}
	for i, n := range g.Nodes {
		if n.Down {
			fmt.Fprintf(&b, "  style n%d stroke-dasharray: 5 5\n", i)
		}
	}
	return b.String()
}
