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
	lines := make([]string, len(p.Nodes))
	server := slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == p.NamesAt })
	if server < 0 {
		server = max(0, slices.Index(routers, false))
	}
	if p.NamesAt == NoNames {
		return lines
	}
	var all strings.Builder
	seen := map[string]bool{}
	for i, n := range p.Nodes {
		key := strings.ToLower(n.Name)
		if seen[key] || !lnx.IsHostName(n.Name) {
			continue // the DNS cannot tell it from another node
		}
		seen[key] = true
		var addrs []netip.Prefix
		for _, e := range ends[i] {
			addrs = append(addrs, e.addrs...)
		}
		for some := range slices.Chunk(addrs, namesInLine) {
			all.WriteString("dns name " + n.Name)
			for _, a := range some {
				all.WriteString(" " + a.Addr().String())
			}
			all.WriteString("\n")
		}
	}
	var common strings.Builder
	common.WriteString("\n")
	if p.Zone != "" {
		common.WriteString("dns zone " + p.Zone + "\n")
	}
	for _, a := range ends[server][0].addrs {
		fmt.Fprintf(&common, "dns server %s # %s\n", a.Addr(), p.Nodes[server].Name)
	}
	for i := range lines {
		lines[i] = common.String()
	}
	lines[server] += all.String()
	return lines
}
