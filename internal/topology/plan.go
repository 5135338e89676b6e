// Package topology describes the shape of networks. A Plan is a network before it has files: it is
// read from a short .net file or generated as one of the usual shapes, and .lnx files are made from
// it. A Graph shows what the .lnx files of a network connect, as SVG or in the languages of
// Graphviz and Mermaid.
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

// These are the limits of a plan, and its defaults.
const (
	MaxNodes    = 1000
	DefaultPort = 6000 // first UDP port
	lastPort    = 65535
)

// ErrPlan marks a plan from which no files can be made.
var ErrPlan = errors.New("invalid plan")

// Plan is a network before its files.
type Plan struct {
	About string // line of text about the plan; may be empty
	Port  int    // first UDP port; 0: DefaultPort, or 5000 in the course's form
	// Family says which versions of IP the links have.
	Family Family
	Nodes  []Node
	Links  []Link
	NATs   []NAT
	// Forwards are the port forwards of the NATs.
	Forwards []Forward
	// NamesAt is the node that serves the names of all nodes by the DNS. If it is empty, this is
	// the host that the largest number of nodes can query, or the first node. If it is NoNames, no
	// node serves names. Zone is the domain of the names; empty: lnx's default.
	NamesAt, Zone string
	// Machines are the other machines on which nodes run.
	Machines []Machine

	course     bool     // the plan has the course's form
	portAt     lnx.Word // position at which the file sets Port; zero: it does not
	portSource string
}

// Family says which versions of IP links have.
type Family uint8

// These are the families: IPv4 alone, IPv6 alone, or both.
const (
	IPv4 Family = iota
	IPv6
	Dual
)

// Families are the names, in the order of the constants.
var Families = []string{"4", "6", "dual"}

// ParseFamily returns the family of a name.
func ParseFamily(name string) (Family, error) {
	i := slices.Index(Families, name)
	if i < 0 {
		return 0, fmt.Errorf("%q is not an address family: must be 4, 6 or dual", name)
	}
	return Family(i), nil
}

// NoNames is the NamesAt of a network without the DNS.
const NoNames = "off"

// Role is what a node does with packets for others.
type Role uint8

// These are the roles.
const (
	Unsaid Role = iota // no statement: a router if the node has several links, or else a host
	Host
	Router
)

// Node is a node of a plan.
type Node struct {
	Name string
	Role Role

	host string // host that the node runs on; empty or localhost: this machine
}

// Link is a link between two nodes of a plan, by their indexes.
type Link struct {
	A, B int
	// Words are the impairments of the link in each direction, as arguments of `impair`; empty: no
	// impairments.
	Words string
	// Addrs are the IPv4 addresses of A and B. The plan chooses those that are invalid. If the two
	// are not in one subnet, the link is point-to-point, with prefixes of 32 bits.
	Addrs [2]netip.Prefix
	// Addrs6 are the IPv6 addresses of A and B: two of one subnet, or invalid ones.
	Addrs6 [2]netip.Prefix
}

// File is a node's .lnx file.
type File struct {
	Name string // name of the node
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

// subnet returns the IPv4 network of a link: 10.N.0.0/24 for link N < 256. If some links have
// addresses of their own, the others get addresses from 100.64.0.0/10, which users' networks avoid.
func (p *Plan) subnet(link int) netip.Prefix {
	a := [4]byte{10, byte(link % 256), byte(link / 256), 0}
	if slices.ContainsFunc(p.Links, func(l Link) bool {
		return l.Addrs[0].IsValid() || l.Addrs[1].IsValid()
	}) {
		a = [4]byte{100, byte(64 + link/256), byte(link % 256), 0}
	}
	return netip.PrefixFrom(netip.AddrFrom4(a), 24)
}

// addrs6 returns the IPv6 addresses of the two ends of a link: from 2001:db8:N::/64 for link N. If
// some links have addresses of their own, the others get addresses from 2001:db8:ffff:N::/64.
func (p *Plan) addrs6(link int) (ends [2]netip.Prefix) {
	if given := p.Links[link].Addrs6; given[0].IsValid() {
		return given
	}
	a := [16]byte{0x20, 0x01, 0x0d, 0xb8, byte(link >> 8), byte(link)}
	if slices.ContainsFunc(p.Links, func(l Link) bool { return l.Addrs6[0].IsValid() }) {
		a = [16]byte{0x20, 0x01, 0x0d, 0xb8, 0xff, 0xff, byte(link >> 8), byte(link)}
	}
	for i := range ends {
		a[15]++
		ends[i] = netip.PrefixFrom(netip.AddrFrom16(a), 64)
	}
	return ends
}

// addrs returns the addresses of the two ends of a link for each version of IP.
func (p *Plan) addrs(link int) (list [][2]netip.Prefix) {
	if p.Family != IPv6 {
		list = append(list, p.addrs4(link))
	}
	if p.Family != IPv4 {
		list = append(list, p.addrs6(link))
	}
	return list
}

// addrs4 returns the IPv4 addresses of the two ends of a link.
func (p *Plan) addrs4(link int) [2]netip.Prefix {
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

// end is one end of a link, in the file of its node.
type end struct {
	link       int
	own, other int            // indexes of the two nodes
	addrs      []netip.Prefix // one address of each version of IP
	peers      []netip.Addr
	udp, at    int // UDP ports
}

func (p *Plan) ends() [][]end {
	all := make([][]end, len(p.Nodes))
	for i, l := range p.Links {
		a := end{
			link: i, own: l.A, other: l.B, udp: p.port() + 2*i, at: p.port() + 2*i + 1,
		}
		b := end{link: i, own: l.B, other: l.A, udp: a.at, at: a.udp}
		for _, addrs := range p.addrs(i) {
			a.addrs, a.peers = append(a.addrs, addrs[0]), append(a.peers, addrs[1].Addr())
			b.addrs, b.peers = append(b.addrs, addrs[1]), append(b.peers, addrs[0].Addr())
		}
		all[l.A] = append(all[l.A], a)
		all[l.B] = append(all[l.B], b)
	}
	return all
}

func (p *Plan) routers(ends [][]end) []bool {
	are := make([]bool, len(p.Nodes))
	for i, n := range p.Nodes {
		are[i] = n.Role == Router || n.Role == Unsaid && len(ends[i]) > 1
	}
	return are
}

// fault is a reason why no files can be made from a plan.
type fault struct {
	msg   string
	node  int  // index of the node in question; -1: none
	ports bool // the fault is about ports
}

// faults returns all faults of the plan as a whole.
func (p *Plan) faults() (list []fault) {
	if len(p.Nodes) == 0 {
		return []fault{{"the plan has no nodes", -1, false}}
	}
	if len(p.Nodes) > MaxNodes {
		msg := fmt.Sprintf("the plan has %d nodes, more than %d", len(p.Nodes), MaxNodes)
		return []fault{{msg, -1, false}}
	}
	if p.course && p.Family != IPv4 {
		msg := fmt.Sprintf("the course's form of plans has IPv4 only, not family %s",
			Families[p.Family])
		list = append(list, fault{msg, -1, false})
	}
	if i := slices.IndexFunc(p.Machines, func(m Machine) bool {
		return m.Address.Is6() || m.Here.Is6()
	}); p.course && i >= 0 {
		msg := "the course's form of plans has IPv4 only, and host " + p.Machines[i].Name +
			" is reached over IPv6"
		list = append(list, fault{msg, -1, false})
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

// Files makes the network's files, one for each node in order.
func (p *Plan) Files() ([]File, error) {
	if f := p.faults(); len(f) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrPlan, f[0].msg)
	}
	if p.course {
		return p.courseFiles(), nil
	}
	ends := p.ends()
	routers := p.routers(ends)
	names := p.names(ends, routers)
	files := make([]File, len(p.Nodes))
	for i, n := range p.Nodes {
		files[i] = File{Name: n.Name, Text: []byte(p.file(i, ends, routers) + names[i])}
	}
	return files, nil
}

func (p *Plan) file(node int, all [][]end, routers []bool) string {
	ends := all[node]
	var b strings.Builder
	role := "host"
	if routers[node] {
		role = "router"
	}
	fmt.Fprintf(&b, "# %s, a %s%s.\n", p.Nodes[node].Name, role, prefixed(" of ", p.About))
	for i, e := range ends {
		other := p.Nodes[e.other].Name
		fmt.Fprintf(&b, "interface if%d %s %s:%d # to %s\n", i, e.addrs[0],
			p.udpHost(e.own, e.other), e.udp, other)
		for _, a := range e.addrs[1:] {
			fmt.Fprintf(&b, "address if%d %s\n", i, a)
		}
		for _, a := range e.peers {
			fmt.Fprintf(&b, "neighbor %s at %s:%d via if%d # %s\n", a,
				p.udpHost(e.other, e.own), e.at, i, other)
		}
		if words := p.Links[e.link].Words; words != "" {
			fmt.Fprintf(&b, "impair if%d out %s\n", i, words)
		}
		b.WriteString("\n")
	}
	if !routers[node] {
		b.WriteString("routing static\n")
		p.hostRoutes(&b, ends, routers)
		return b.String()
	}
	b.WriteString("routing" + [...]string{" rip", " ripng", " rip ripng"}[p.Family] + "\n")
	for _, e := range ends {
		outside := p.natTo(node, e.other) != nil || p.natTo(e.other, node) != nil
		if routers[e.other] && !outside && e.peers[0].Is4() { // RIPng announces to all neighbors
			fmt.Fprintf(&b, "rip advertise-to %s # %s\n", e.peers[0], p.Nodes[e.other].Name)
		}
		if p.routeTo(&b, e, routers) {
			fmt.Fprintf(&b, "rip originate prefix %s/32\n", e.peers[0])
		}
	}
	p.natLines(&b, node, all)
	return b.String()
}

// routeTo writes the route to a host at the other end of a point-to-point link, if no subnet leads
// to the host. It reports whether it wrote one.
func (p *Plan) routeTo(b *strings.Builder, e end, routers []bool) bool {
	if !e.addrs[0].IsSingleIP() || routers[e.other] {
		return false
	}
	fmt.Fprintf(b, "route %s/32 via %s # %s\n", e.peers[0], e.peers[0], p.Nodes[e.other].Name)
	return true
}

// hostRoutes writes the routes of a host: to its point-to-point neighbors, and the default routes.
func (p *Plan) hostRoutes(b *strings.Builder, ends []end, routers []bool) {
	for _, e := range ends {
		p.routeTo(b, e, routers)
	}
	i := slices.IndexFunc(ends, func(e end) bool { return routers[e.other] })
	if i < 0 {
		return
	}
	for _, a := range ends[i].peers {
		to := "0.0.0.0/0"
		if a.Is6() {
			to = "::/0"
		}
		fmt.Fprintf(b, "route %s via %s # default route through %s\n", to, a,
			p.Nodes[ends[i].other].Name)
	}
}

// PortsTaken combines the errors about ports that other programs use into one error. The errors are
// in the node files of a plan; the new error is at the plan's first port, where the user can change
// it.
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
