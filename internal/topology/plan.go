// Package topology is the shape of networks: plans, from which .lnx files are made (a file of them
// is a few lines, and a generator makes the usual shapes), and graphs of what .lnx files say, with
// pictures as SVG, Graphviz and Mermaid.
package topology

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/lnx"
)

// The limits of a plan, and its defaults.
const (
	MaxNodes    = 1000
	DefaultPort = 6000 // the first UDP port
	lastPort    = 65535
)

// ErrPlan marks a plan of which no files can be made.
var ErrPlan = errors.New("cannot be planned")

// Plan is a network before its files.
type Plan struct {
	About string // a line about it; empty: none
	Port  int    // the first UDP port, of 127.0.0.1; 0: DefaultPort
	Nodes []Node
	Links []Link
	// Machines are the other machines on which nodes run.
	Machines []Machine

	course     bool     // it is a .net file of the course
	portAt     lnx.Word // of the plan's file; zero: it does not say
	portSource string
}

// Role is what a node does with packets for others.
type Role uint8

// The roles.
const (
	Unsaid Role = iota // a router if it has several links, else a host
	Host
	Router
)

// Node is a node of a plan.
type Node struct {
	Name string
	Role Role

	host string // of the file; empty or localhost: this machine
}

// Link is a link between two nodes of a plan, by their indexes.
type Link struct {
	A, B int
	// Words are what the link does to packets, each way, as `impair` has it; empty: nothing.
	Words string
	// Addrs are the addresses of A and B. Each may be invalid: the plan chooses one. If they are
	// not two of one subnet, the link is point to point, with prefixes of 32 bits.
	Addrs [2]netip.Prefix
}

// File is a node's .lnx file.
type File struct {
	Name string // of the node
	Text []byte
}

func (p *Plan) port() int {
	if p.course {
		return cmp.Or(p.Port, courseDefaultPort)
	}
	return cmp.Or(p.Port, DefaultPort)
}

func (p *Plan) last() int {
	if p.course {
		return p.port() + len(p.Nodes) - 1
	}
	return p.port() + 2*len(p.Links) - 1
}

// Subnet is the network of the link with that number.
func Subnet(link int) netip.Prefix {
	a := netip.AddrFrom4([4]byte{10, byte(link % 256), byte(link / 256), 0})
	return netip.PrefixFrom(a, 24)
}

// subnet is the network of a link in this plan. If links have addresses of their own, the other
// addresses are of 100.64.0.0/10, which users' networks avoid.
func (p *Plan) subnet(link int) netip.Prefix {
	if !slices.ContainsFunc(p.Links, func(l Link) bool {
		return l.Addrs[0].IsValid() || l.Addrs[1].IsValid()
	}) {
		return Subnet(link)
	}
	a := netip.AddrFrom4([4]byte{100, byte(64 + link/256), byte(link % 256), 0})
	return netip.PrefixFrom(a, 24)
}

// addrs are the addresses of the two ends of a link.
func (p *Plan) addrs(link int) [2]netip.Prefix {
	subnet, given := p.subnet(link), p.Links[link].Addrs
	planned := subnet.Addr()
	pointToPoint := given[0].IsValid() || given[1].IsValid()
	if given[0].IsValid() && given[0].Masked() == given[1].Masked() &&
		given[0].Addr() != given[1].Addr() {
		return given
	}
	for i := range given {
		planned = planned.Next()
		bits := subnet.Bits()
		if pointToPoint {
			bits = planned.BitLen()
		}
		if given[i].IsValid() {
			given[i] = netip.PrefixFrom(given[i].Addr(), bits)
		} else {
			given[i] = netip.PrefixFrom(planned, bits)
		}
	}
	return given
}

// end is one end of a link as its node's file has it.
type end struct {
	link       int
	own, other int // the nodes
	addr       netip.Prefix
	peer       netip.Addr
	udp, at    int // ports
}

func (p *Plan) ends() [][]end {
	all := make([][]end, len(p.Nodes))
	for i, l := range p.Links {
		addrs := p.addrs(i)
		a := end{
			link: i, own: l.A, other: l.B, addr: addrs[0], peer: addrs[1].Addr(),
			udp: p.port() + 2*i, at: p.port() + 2*i + 1,
		}
		b := end{
			link: i, own: l.B, other: l.A, addr: addrs[1], peer: a.addr.Addr(),
			udp: a.at, at: a.udp,
		}
		all[l.A] = append(all[l.A], a)
		all[l.B] = append(all[l.B], b)
	}
	return all
}

// routers says which nodes are routers.
func (p *Plan) routers(ends [][]end) []bool {
	are := make([]bool, len(p.Nodes))
	for i, n := range p.Nodes {
		are[i] = n.Role == Router || n.Role == Unsaid && len(ends[i]) > 1
	}
	return are
}

// fault is why no files can be made of a plan.
type fault struct {
	msg   string
	node  int  // that it is about; -1: none
	ports bool // it is about the ports
}

// faults are all that is wrong with a plan as a whole.
func (p *Plan) faults() (list []fault) {
	if len(p.Nodes) == 0 {
		return []fault{{"the plan has no nodes", -1, false}}
	}
	if len(p.Nodes) > MaxNodes {
		msg := fmt.Sprintf("the plan has %d nodes, more than %d", len(p.Nodes), MaxNodes)
		return []fault{{msg, -1, false}}
	}
	if last := p.last(); p.port() < 1 || last > lastPort {
		list = append(list, fault{fmt.Sprintf("the plan needs ports %d to %d; ports are 1 to %d",
			p.port(), last, lastPort), -1, true})
	}
	for i, ends := range p.ends() {
		if len(ends) == 0 {
			list = append(list, fault{p.Nodes[i].Name + " has no link", i, false})
		}
	}
	return list
}

// Files makes the network's files, in the order of the nodes.
func (p *Plan) Files() ([]File, error) {
	if f := p.faults(); len(f) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrPlan, f[0].msg)
	}
	if p.course {
		return p.courseFiles(), nil
	}
	ends := p.ends()
	routers := p.routers(ends)
	files := make([]File, len(p.Nodes))
	for i, n := range p.Nodes {
		files[i] = File{Name: n.Name, Text: []byte(p.file(i, ends[i], routers))}
	}
	return files, nil
}

func (p *Plan) file(node int, ends []end, routers []bool) string {
	var b strings.Builder
	role := "host"
	if routers[node] {
		role = "router"
	}
	fmt.Fprintf(&b, "# %s, a %s%s.\n", p.Nodes[node].Name, role, prefixed(" of ", p.About))
	for i, e := range ends {
		other := p.Nodes[e.other].Name
		fmt.Fprintf(&b, "interface if%d %s %s:%d # to %s\n", i, e.addr,
			p.udpHost(e.own, e.other), e.udp, other)
		fmt.Fprintf(&b, "neighbor %s at %s:%d via if%d # %s\n", e.peer,
			p.udpHost(e.other, e.own), e.at, i, other)
		if words := p.Links[e.link].Words; words != "" {
			fmt.Fprintf(&b, "impair if%d out %s\n", i, words)
		}
		b.WriteString("\n")
	}
	if routers[node] {
		b.WriteString("routing rip\n")
	} else {
		b.WriteString("routing static\n")
	}
	for _, e := range ends {
		other := p.Nodes[e.other].Name
		if routers[node] && routers[e.other] {
			fmt.Fprintf(&b, "rip advertise-to %s # %s\n", e.peer, other)
		}
		if e.addr.IsSingleIP() && !routers[e.other] { // no subnet leads there
			fmt.Fprintf(&b, "route %s/32 via %s # %s\n", e.peer, e.peer, other)
			if routers[node] {
				fmt.Fprintf(&b, "rip originate prefix %s/32\n", e.peer)
			}
		}
	}
	if routers[node] {
		return b.String()
	}
	if i := slices.IndexFunc(ends, func(e end) bool { return routers[e.other] }); i >= 0 {
		fmt.Fprintf(&b, "route 0.0.0.0/0 via %s # default route through %s\n",
			ends[i].peer, p.Nodes[ends[i].other].Name)
	}
	return b.String()
}

// PortsTaken reports errors in the node files of a plan at the word of the plan that can correct
// them, its first port. The errors say that other programs of this machine use the ports.
func (p *Plan) PortsTaken(planFile string, errs lnx.Errors) *lnx.Error {
	first := errs[0]
	e := *first
	e.File, e.Line, e.Col, e.Text, e.Source = planFile, p.portAt.Pos.Line, p.portAt.Pos.Col,
		p.portAt.Text, p.portSource
	e.Msg = fmt.Sprintf("its ports are %d to %d; %s", p.port(), p.last(), first.Msg)
	if others := len(errs) - 1; others > 0 {
		e.Msg += fmt.Sprintf(", and %d more are not free", others)
	}
	e.Want = "a line `port N` with another first port"
	if _, or, ok := strings.Cut(first.Want, ", or "); ok {
		e.Want += ", or " + or
	}
	return &e
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
