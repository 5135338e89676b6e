package interchange

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/topology"
)

// mininetScript is the template of the script. FILES and LINKS are placeholders.
//
//go:embed mininet_script.py
var mininetScript string

// mininet writes a Python script for mininet. It has a host for each node, and a mininet link for
// each of the network's links, which carries the UDP datagrams. Mininet's links have no tc
// parameters, because the nodes apply the impairments.
func (n *Network) mininet() ([]topology.File, error) {
	graph := topology.From(n.Name, n.Nodes)
	addrs, err := n.perLink(graph)
	if err != nil {
		return nil, err
	}
	var texts, b strings.Builder
	files := n.files(func(node, iface int) (string, string) {
		c := n.Nodes[node]
		addr, ok := addrs[nodeInterface{node, c.Interfaces[iface].Name}]
		switch {
		case !ok: // the link has no other end
			return unspecified, unspecified
		case c.SharedSocket:
			return unspecified, addr.Addr().String()
		}
		return addr.Addr().String(), addr.Addr().String()
	})
	for _, f := range files {
		fmt.Fprintf(&texts, "    %s: [\n", strconv.QuoteToASCII(f.Name))
		for line := range strings.Lines(string(f.Text)) {
			fmt.Fprintf(&texts, "        %s,\n", strconv.QuoteToASCII(line))
		}
		texts.WriteString("    ],\n")
	}
	for node, c := range n.Nodes {
		// Mininet assigns a host's own address to its first link.
		own := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		for _, e := range slices.Backward(graph.Links) {
			for _, s := range slices.Backward(e.Ends) {
				if a, ok := addrs[nodeInterface{node, s.Iface}]; ok && s.Node == node {
					own = a
				}
			}
		}
		fmt.Fprintf(&b, "        self.addHost('%s', ip='%s')\n", n.names[c.Name], own)
	}
	n.mininetLinks(&b, graph, addrs)
	name := naming{}.fit(n.Name)
	text := strings.NewReplacer("# FILES\n", texts.String(), "        # LINKS\n", b.String(),
		"NETWORK", name, "'TOPO'", strconv.QuoteToASCII(n.Name)).Replace(mininetScript)
	return []topology.File{{Name: name + ".py", Text: []byte(text)}}, nil
}

// mininetLinks writes the calls that add the links, in the order of the interfaces in the nodes'
// files. A link of more than two nodes becomes a switch.
func (n *Network) mininetLinks(
	b *strings.Builder, graph *topology.Graph, addrs map[nodeInterface]netip.Prefix,
) {
	taken := map[string]bool{}
	for _, name := range n.names {
		taken[name] = true
	}
	end := func(s topology.Stub) (string, string) {
		return "'" + n.names[n.Nodes[s.Node].Name] + "'",
			"{'ip': '" + addrs[nodeInterface{s.Node, s.Iface}].String() + "'}"
	}
	switches := 0
	for _, e := range graph.Links {
		if len(e.Ends) < 2 {
			continue
		}
		if len(e.Ends) == 2 {
			a, paramsA := end(e.Ends[0])
			z, paramsZ := end(e.Ends[1])
			fmt.Fprintf(b, "        self.addLink(%s, %s, params1=%s, params2=%s)\n",
				a, z, paramsA, paramsZ)
			continue
		}
		switches++
		for taken[fmt.Sprintf("s%d", switches)] {
			switches++
		}
		fmt.Fprintf(b, "        self.addSwitch('s%d')\n", switches)
		for _, s := range e.Ends {
			a, params := end(s)
			fmt.Fprintf(b, "        self.addLink(%s, 's%d', params1=%s)\n", a, switches, params)
		}
	}
}

// nodeInterface is a node's interface.
type nodeInterface struct {
	node  int
	iface string
}

// perLink gives each link a subnet, and each end of the link an address.
func (n *Network) perLink(graph *topology.Graph) (map[nodeInterface]netip.Prefix, error) {
	addrs := map[nodeInterface]netip.Prefix{}
	first := uint64(binary.BigEndian.Uint32(n.Subnet.Addr().AsSlice()))
	last := uint64(1) << (32 - n.Subnet.Bits())
	next := uint64(0)
	for _, e := range graph.Links {
		if len(e.Ends) < 2 {
			continue
		}
		bits, size := 30, uint64(4)
		for size < uint64(len(e.Ends)+2) { // plus the network and broadcast addresses
			bits, size = bits-1, 2*size
		}
		next = (next + size - 1) / size * size
		if next+size > last {
			return nil, fmt.Errorf("subnet %s: too small for %d links; choose a larger one",
				n.Subnet, len(graph.Links))
		}
		for i, s := range e.Ends {
			a := toAddr(uint32(first + next + uint64(i) + 1))
			addrs[nodeInterface{s.Node, s.Iface}] = netip.PrefixFrom(a, bits)
		}
		next += size
	}
	return addrs, nil
}

func toAddr(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
