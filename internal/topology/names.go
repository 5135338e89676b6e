package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// dns reads `dns NODE [ZONE]` or `dns off`.
func (r *reader) dns(at lnx.Word, words []lnx.Word) {
	switch {
	case len(words) == 0 || len(words) > 2 || words[0].Text == NoNames && len(words) > 1:
		r.text.Wrong(at, "the line must have the node that serves names",
			"dns NODE [ZONE], or dns off")
	case r.plan.NamesAt != "":
		r.text.Wrong(at, "the node that serves names is already "+r.plan.NamesAt,
			"one line with it")
	case len(words) == 2 && !lnx.IsHostName(words[1].Text):
		r.text.Wrong(words[1], diagnostic.Quote(words[1].Text)+" is not a domain name",
			"such as internal or example.com")
	case words[0].Text != NoNames:
		if _, ok := r.node(words[0]); !ok {
			return
		}
		fallthrough
	default:
		r.plan.NamesAt = words[0].Text
		if len(words) == 2 {
			r.plan.Zone = words[1].Text
		}
	}
}

// namesInLine limits the addresses in a line of a node's file.
const namesInLine = 6

// names returns the lines about the DNS in each node's file.
func (p *Plan) names(ends [][]end, routers []bool) []string {
	if p.NamesAt == NoNames {
		return make([]string, len(p.Nodes))
	}
	server := slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == p.NamesAt })
	for i, most := 0, 0; p.NamesAt == "" && i < len(p.Nodes); i++ {
		if routers[i] {
			continue
		}
		if n := p.clientsOf(i, ends); n > most {
			server, most = i, n
		}
	}
	server = max(0, server)
	hosts := make([]lnx.HostName, len(p.Nodes))
	for i, n := range p.Nodes {
		hosts[i].Name = n.Name
		for _, e := range ends[i] {
			var addrs []netip.Addr
			for _, a := range e.addrs {
				addrs = append(addrs, a.Addr())
			}
			at := len(hosts[i].Addrs)
			if p.natTo(i, e.other) != nil {
				at = 0 // all nodes can reach this address
			}
			hosts[i].Addrs = slices.Insert(hosts[i].Addrs, at, addrs...)
		}
	}
	return dnsLines(hosts, server, len(ends[server][0].addrs), p.Zone)
}

// Names returns the lines about the DNS for each of the files of a network. The named node serves
// the names of all nodes. If no node is named, the first host does.
func Names(configs []*lnx.Config, server, zone string) ([]string, error) {
	at := slices.IndexFunc(configs, func(c *lnx.Config) bool {
		return c.Name == server || server == "" && !c.Forwarding
	})
	if server != "" && at < 0 {
		return nil, fmt.Errorf("no node %s", server)
	}
	at = max(0, at)
	hosts := make([]lnx.HostName, len(configs))
	for i, c := range configs {
		hosts[i].Name = c.Name
		hosts[i].Addrs = c.HostAddrs()
	}
	if len(hosts[at].Addrs) == 0 {
		return nil, fmt.Errorf("%s has no address for a DNS server", hosts[at].Name)
	}
	return dnsLines(hosts, at, 1, zone), nil
}

// dnsLines returns the lines about the DNS in each host's file. Every host queries the server at
// its first addresses; asked is the number of these addresses.
func dnsLines(hosts []lnx.HostName, server, asked int, zone string) []string {
	lines := make([]string, len(hosts))
	var all strings.Builder
	seen := map[string]bool{}
	for _, h := range hosts {
		key := strings.ToLower(h.Name)
		if seen[key] || !lnx.IsHostName(h.Name) {
			continue // not a name in the DNS, or the name of an earlier node
		}
		seen[key] = true
		for some := range slices.Chunk(h.Addrs, namesInLine) {
			all.WriteString("dns name " + h.Name)
			for _, a := range some {
				all.WriteString(" " + a.String())
			}
			all.WriteString("\n")
		}
	}
	var common strings.Builder
	common.WriteString("\n")
	if zone != "" {
		common.WriteString("dns zone " + zone + "\n")
	}
	for _, a := range hosts[server].Addrs[:asked] {
		fmt.Fprintf(&common, "dns server %s # %s\n", a, hosts[server].Name)
	}
	for i := range lines {
		lines[i] = common.String()
	}
	lines[server] += all.String()
	return lines
}
