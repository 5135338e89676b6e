package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// NAT translates the IPv4 packets that a router forwards to an outside neighbor. Routers announce
// nothing over such a link. Instead, the router has a default route through its first outside
// neighbor.
type NAT struct {
	Router, Outside int
	Words           string // arguments as in a line `nat on NAME`

	at lnx.Word
}

// Forward is a port forward of a router's NATs to a node inside.
type Forward struct {
	Router, To int
	Words      string // protocol and port, as in a line `nat forward NAME`
	Port       string // port of the node

	at, toAt lnx.Word
}

// forward reads forward ROUTER PROTOCOL PORT NODE:PORT.
func (r *reader) forward(at lnx.Word, words []lnx.Word) {
	if len(words) != 4 {
		r.text.Wrong(at, "the line must name a router, a protocol, a port and an inside node",
			"forward R tcp 8080 A:80")
		return
	}
	target := words[3]
	var port string
	target.Text, port, _ = strings.Cut(target.Text, ":")
	router, ok := r.node(words[0])
	to, also := r.node(target)
	if !ok || !also {
		return
	}
	f := Forward{
		Router: router, To: to, Words: joined(words[1:3]), Port: port,
		at: words[0], toAt: target,
	}
	args := strings.Fields(f.Words)
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		r.text.Wrong(words[3], diagnostic.Quote(port)+" is not a port", target.Text+":80")
	} else if _, err := lnx.ReadNATForward(append(args, "0.0.0.0:80")); err != nil {
		wrong := words[1]
		if _, bad := lnx.ReadNATForward([]string{args[0], "80", "0.0.0.0:80"}); bad == nil {
			wrong = words[2]
		}
		r.text.Wrong(wrong, err.Error(), "")
	}
	r.plan.Forwards = append(r.plan.Forwards, f)
}

// nat reads nat ROUTER NEIGHBOR [TYPE...].
func (r *reader) nat(at lnx.Word, words []lnx.Word) {
	if len(words) < 2 {
		r.text.Wrong(at, "the router or its outside neighbor is missing", "nat R1 R2 [TYPE]")
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

// natFaults reports NATs without a link or a router, and port forwards that cannot work.
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
			r.text.Wrong(n.at, router+" is a host, and only routers have a NAT", "router "+router)
		case p.Family == IPv6:
			r.text.Wrong(n.at, "NAT is for IPv4, and the links have IPv6 only", "family dual")
		case p.natTo(n.Router, n.Outside) != &p.NATs[i]:
			r.text.Wrong(n.at, router+" already has a NAT to "+outside, "one line for each link")
		}
	}
	for i, f := range p.Forwards {
		router := p.Nodes[f.Router].Name
		switch {
		case !slices.ContainsFunc(p.NATs, func(n NAT) bool { return n.Router == f.Router }):
			r.text.Wrong(f.at, router+" has no NAT", "a line `nat "+router+" NEIGHBOR`")
		case f.To == f.Router:
			r.text.Wrong(f.at, router+" forwards to itself", "a node inside")
		case len(ends[f.To]) > 0 && !p.isInside(f.Router, f.To, ends):
			r.text.Wrong(f.toAt, f.toAt.Text+" is not inside the NAT of "+router, "a node inside")
		case slices.ContainsFunc(p.Forwards[:i], func(g Forward) bool {
			return g.Router == f.Router && g.Words == f.Words
		}):
			r.text.Wrong(f.at, router+" already forwards "+f.Words, "one line for each port")
		}
	}
}

// isInside reports whether a router reaches a node without a NAT in between.
func (p *Plan) isInside(router, node int, ends [][]end) bool {
	seen := map[int]bool{router: true}
	for next := []int{router}; len(next) > 0; next = next[1:] {
		for _, e := range ends[next[0]] {
			switch {
			case p.natTo(e.own, e.other) != nil:
			case e.other == node:
				return true
			case !seen[e.other] && p.natTo(e.other, e.own) == nil:
				seen[e.other] = true
				next = append(next, e.other)
			}
		}
	}
	return false
}

// clientsOf returns how many nodes can open connections to a node. Nodes outside a NAT cannot open
// connections to nodes inside.
func (p *Plan) clientsOf(server int, ends [][]end) int {
	if len(p.NATs) == 0 {
		return len(p.Nodes)
	}
	can := map[int]bool{server: true}
	for next := []int{server}; len(next) > 0; next = next[1:] {
		for _, e := range ends[next[0]] {
			if !can[e.other] && p.natTo(e.own, e.other) == nil {
				can[e.other] = true
				next = append(next, e.other)
			}
		}
	}
	return len(can)
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

// natLines writes the NATs of a router with their port forwards, and its default route through the
// first.
func (p *Plan) natLines(b *strings.Builder, node int, ends [][]end) {
	routed := false
	for i, e := range ends[node] {
		n := p.natTo(e.own, e.other)
		if n == nil {
			continue
		}
		fmt.Fprintf(b, "nat on if%d%s\n", i, prefixed(" ", n.Words))
		for _, f := range p.Forwards {
			if f.Router == node {
				fmt.Fprintf(b, "nat forward if%d %s %s:%s # %s\n", i, f.Words,
					ends[f.To][0].addrs[0].Addr(), f.Port, p.Nodes[f.To].Name)
			}
		}
		if !routed {
			fmt.Fprintf(b, "route 0.0.0.0/0 via %s # default route through %s\n", e.peers[0],
				p.Nodes[e.other].Name)
			b.WriteString("rip originate prefix 0.0.0.0/0\n")
		}
		routed = true
	}
}
