package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// NAT translates the IPv4 packets that a router forwards to a neighbor outside. Routers announce
// nothing over such a link: the router has a default route through the neighbor.
type NAT struct {
	Router, Outside int
	Words           string // as in a line `nat on NAME`

	at lnx.Word
}

// nat reads nat ROUTER NEIGHBOR [TYPE...].
func (r *reader) nat(at lnx.Word, words []lnx.Word) {
	if len(words) < 2 {
		r.text.Wrong(at, "the line must have a router and its neighbor outside", "nat R ISP [TYPE]")
		return
	}
	router, ok := r.node(words[0])
	outside, also := r.node(words[1])
	if !ok || !also {
		return
	}
	n := NAT{Router: router, Outside: outside, Words: joined(words[2:]), at: words[0]}
	if _, err := lnx.ReadNAT(strings.Fields(n.Words)); err != nil {
		r.text.Wrong(words[2], err.Error(), "")
	}
	r.plan.NATs = append(r.plan.NATs, n)
}

// natFaults reports NATs that no link or no router has.
func (r *reader) natFaults() {
	p := r.plan
	ends := p.ends()
	routers := p.routers(ends)
	for i, n := range p.NATs {
		router, outside := p.Nodes[n.Router].Name, p.Nodes[n.Outside].Name
		switch {
		case !slices.ContainsFunc(ends[n.Router], func(e end) bool { return e.other == n.Outside }):
			r.text.Wrong(n.at, router+" has no link to "+outside, "link "+router+" "+outside)
		case !routers[n.Router]:
			r.text.Wrong(n.at, router+" is a host, which translates nothing", "router "+router)
		case p.Family == IPv6:
			r.text.Wrong(n.at, "NAT is for IPv4, and the links have IPv6 only", "family dual")
		case p.natTo(n.Router, n.Outside) != &p.NATs[i]:
			r.text.Wrong(n.at, router+" has a NAT to "+outside+" already", "one line for each link")
		}
	}
}

// natTo returns the NAT of a node at a link to another, or nil.
func (p *Plan) natTo(node, other int) *NAT {
	for i := range p.NATs {
		if n := &p.NATs[i]; n.Router == node && n.Outside == other {
			return n
		}
	}
	return nil
}

// natLines writes the NATs of a router, and its default route through the first.
func (p *Plan) natLines(b *strings.Builder, ends []end) {
	routed := false
	for i, e := range ends {
		n := p.natTo(e.own, e.other)
		if n == nil {
			continue
		}
		fmt.Fprintf(b, "nat on if%d%s\n", i, prefixed(" ", n.Words))
		if !routed {
			fmt.Fprintf(b, "route 0.0.0.0/0 via %s # default route through %s\n", e.peers[0],
				p.Nodes[e.other].Name)
			b.WriteString("rip originate prefix 0.0.0.0/0\n")
		}
		routed = true
	}
}
