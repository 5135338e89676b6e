package interchange

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/tidepool-net/tidepool/internal/lnx"
	"github.com/tidepool-net/tidepool/internal/topology"
)

// Names that containerlab allows its users to define: labels of nodes and variables of links.
const (
	roleLabel  = "tidepool-role"
	addrsVar   = "tidepool-addresses"
	impairVar  = "tidepool-impair"
	routerRole = "router"
	hostRole   = "host"
)

// containerlab writes a topology file of containerlab, and the .lnx files that it binds. The UDP
// datagrams cross the management network, where each node has a fixed address. The links only make
// the topology visible to containerlab's own commands; their interfaces are not used.
func (n *Network) containerlab() ([]topology.File, error) {
	addrs, err := n.perNode()
	if err != nil {
		return nil, err
	}
	var nodes yaml.MapSlice
	files := n.files(func(node, _ int) (string, string) { return addrs[node], addrs[node] })
	for i, f := range files {
		role := hostRole
		if n.Nodes[i].Forwarding {
			role = routerRole
		}
		node := fields(
			"kind", "linux",
			"image", n.Image,
			"cmd", strings.Join(arguments(f.Name), " "),
			"binds", []string{f.Name + ".lnx:" + fileFolder + "/" + f.Name + ".lnx:ro"},
			"mgmt-ipv4", addrs[i],
			"labels", fields(roleLabel, role),
		)
		if hasTun(n.Nodes[i]) {
			node = append(node, fields("user", "0")...)
		}
		nodes = append(nodes, fields(f.Name, node)...)
	}
	network := naming{}.fit(n.Name)
	topo := fields("nodes", nodes)
	if links := n.clabLinks(); len(links) > 0 {
		topo = append(topo, fields("links", links)...)
	}
	text, err := documents("containerlab deploy starts the network "+network+".", fields(
		"name", network,
		"mgmt", fields("network", "tidepool-"+network, "ipv4-subnet", n.Subnet.String()),
		"topology", topo,
	))
	for i := range files {
		files[i].Name += ".lnx"
	}
	return append([]topology.File{{Name: network + ".clab.yml", Text: text}}, files...), err
}

// clabLinks returns the links with two ends. Their variables have the virtual addresses and, for
// Import, the impairments that both nodes apply to packets they send.
func (n *Network) clabLinks() (links []any) {
	graph := topology.From(n.Name, n.Nodes)
	for _, e := range graph.Links {
		if len(e.Ends) < 2 {
			continue
		}
		if len(e.Ends) > 2 {
			var names []string
			for _, s := range e.Ends {
				names = append(names, n.Nodes[s.Node].Name)
			}
			n.note(n.Name, 0, "containerlab's links have two ends, so the topology does not show "+
				"that of %s; the nodes use it all the same", strings.Join(names, ", "))
			continue
		}
		var ends, addrs, impair []string
		for _, s := range e.Ends {
			c := n.Nodes[s.Node]
			f, _ := c.Interface(s.Iface)
			name := s.Iface
			if name == "eth0" { // of the management network
				name = "link0"
			}
			ends = append(ends, n.names[c.Name]+":"+name)
			addrs = append(addrs, strings.Trim(fmt.Sprint(f.Addrs()), "[]"))
			impair = append(impair, sent(c, f))
		}
		vars := fields(addrsVar, addrs)
		if impair[0] != "" && impair[0] == impair[1] {
			vars = append(vars, fields(impairVar, impair[0])...)
		}
		links = append(links, fields("endpoints", ends, "vars", vars))
	}
	return links
}

// sent returns the impairments of an interface's outgoing direction as arguments of `impair`. It
// returns an empty text if there are none, or if there are others that these arguments cannot
// express.
func sent(c *lnx.Config, f *lnx.Interface) string {
	var words []string
	for i := range c.Impair {
		if l := &c.Impair[i]; l.Iface == f.Name {
			words = append(words, fmt.Sprintf("%s %s", l.Way, l.Text()))
		}
	}
	if len(words) == 1 {
		text, _ := strings.CutPrefix(words[0], lnx.WayOut+" ")
		if !slices.Contains([]string{lnx.WayIn, lnx.WayBoth}, strings.Fields(text)[0]) {
			return text
		}
	}
	return ""
}
