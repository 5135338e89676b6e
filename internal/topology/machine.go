package topology

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
	"github.com/tidepool-net/tidepool/internal/lnx"
)

// Machine is another machine on which nodes of a plan run.
type Machine struct {
	Name string
	SSH  string // destination as in ssh's arguments: alpha, user@alpha, ssh://user@alpha:2222
	// Address is the machine's own address, to which other machines send the packets of links. Here
	// is the address of this machine as seen from that machine. Each is invalid if unknown.
	Address, Here netip.Addr

	at     lnx.Word
	source string // line that declares the machine
}

// localhost is the name of this machine.
const localhost = "localhost"

// isDestination reports whether a text may be given to ssh as a destination. A text that begins
// with - may not, because ssh would parse it as an option.
func isDestination(text string) bool {
	return text[0] != '-' && strings.IndexFunc(text, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("_.@:/%[]-", c))
	}) < 0
}

const machineForm = "host NAME ssh USER@MACHINE [address ADDRESS]"

// isMachine reports whether a line declares a machine. It accepts a destination without the keyword
// ssh, so that the method machine reports the missing keyword.
func isMachine(words []lnx.Word) bool {
	return len(words) > 2 && words[0].Text == "host" &&
		(words[2].Text == "ssh" || strings.ContainsAny(words[2].Text, "@:"))
}

// machine reads `host NAME ssh DESTINATION [address ADDRESS]`.
func (r *reader) machine(words []lnx.Word) {
	name := words[1]
	if words[2].Text != "ssh" {
		r.text.Wrong(words[2], "`ssh` is missing before "+words[2].Text, machineForm)
		words = slices.Insert(slices.Clone(words), 2, words[1])
	}
	if len(words) != 4 && (len(words) != 6 || words[4].Text != "address") {
		r.text.Wrong(name, "the line must have a host and its ssh destination", machineForm)
		r.plan.Machines = append(r.plan.Machines, Machine{Name: name.Text})
		return
	}
	m := Machine{Name: name.Text, SSH: words[3].Text, at: name}
	m.source = r.text.Source(name.Pos.Line)
	switch i := r.plan.machine(name.Text); {
	case !IsName(name.Text) || name.Text == localhost:
		r.text.Wrong(name, diagnostic.Quote(name.Text)+" cannot name another host",
			"letters, digits, dots, - and _; localhost is this machine")
		return
	case i >= 0:
		r.text.Wrong(name, name.Text+" is already a host", "another name")
		return
	case !isDestination(m.SSH):
		r.text.Wrong(words[3], diagnostic.Quote(m.SSH)+" is not an ssh destination",
			"such as user@alpha or ssh://user@alpha:2222")
	case strings.Count(m.SSH, ":") == 1 && !strings.Contains(m.SSH, "/"):
		r.text.Wrong(words[3], "ssh takes "+diagnostic.Quote(m.SSH)+" as a name, without a port",
			"ssh://"+m.SSH)
	}
	if len(words) == 6 {
		a, err := netip.ParseAddr(words[5].Text)
		if err != nil || a.Is4In6() || a.IsLinkLocalUnicast() || a.IsUnspecified() {
			r.text.Wrong(words[5], diagnostic.Quote(words[5].Text)+" is not an address of a host",
				"an address of "+name.Text+" that the other hosts reach")
		}
		m.Address = a
	}
	r.plan.Machines = append(r.plan.Machines, m)
}

// placeNode reads `node NAME HOST` in a file that declares hosts.
func (r *reader) placeNode(words []lnx.Word) {
	node, host := words[0], words[1]
	if host.Text != localhost && r.plan.machine(host.Text) < 0 {
		r.text.Wrong(host, diagnostic.Quote(host.Text)+" is not a host of this file",
			"localhost, or a line `host "+host.Text+" ssh USER@MACHINE` above")
		return
	}
	switch i, ok := r.node(node); {
	case !ok:
	case r.plan.Nodes[i].host != "":
		r.text.Wrong(node, node.Text+" already has the host "+r.plan.Nodes[i].host, "only one line")
	default:
		r.plan.Nodes[i].host = host.Text
	}
}

// machine returns the index of the machine with that name; -1 for this machine or an unknown name.
func (p *Plan) machine(name string) int {
	return slices.IndexFunc(p.Machines, func(m Machine) bool { return m.Name == name })
}

// MachineOf returns the machine on which a node runs, or nil if it runs on this machine.
func (p *Plan) MachineOf(node int) *Machine {
	if i := p.machine(p.Nodes[node].host); i >= 0 {
		return &p.Machines[i]
	}
	return nil
}

// Crossing returns the links that join two machines and impair no packets.
func (p *Plan) Crossing() (list []int) {
	for i, l := range p.Links {
		if l.Words == "" && p.MachineOf(l.A) != p.MachineOf(l.B) {
			list = append(list, i)
		}
	}
	return list
}

// Addrs returns the addresses of the two ends of a link. They are IPv4 addresses if the link has
// both families.
func (p *Plan) Addrs(link int) (a, b netip.Addr) {
	if p.course {
		return courseAddrs(link)
	}
	ends := p.addrs(link)[0]
	return ends[0].Addr(), ends[1].Addr()
}

// udpHost returns the address at which a node receives packets from another node: its machine's
// address, if known, for a node elsewhere, else the loopback address.
func (p *Plan) udpHost(node, other int) string {
	own, far := p.MachineOf(node), p.MachineOf(other)
	var a netip.Addr
	switch {
	case own == far:
	case own == nil:
		a = far.Here
	default:
		a = own.Address
	}
	if !a.IsValid() {
		return "127.0.0.1"
	}
	if a.Is6() {
		return "[" + a.String() + "]"
	}
	return a.String()
}

// OnMachine turns the errors that a machine reports about its nodes' files into one error in the
// plan, at the first port or the machine's name, where the user can correct them.
func (p *Plan) OnMachine(name, planFile string, errs lnx.Errors) *lnx.Error {
	e := *errs[0]
	e.Msg = "on host " + name + ", " + e.Msg
	i := p.machine(name)
	if i < 0 || strings.HasPrefix(e.Want, "a free port") {
		return p.PortsTaken(planFile, append(lnx.Errors{&e}, errs[1:]...))
	}
	m := &p.Machines[i]
	e.File, e.Line, e.Col = planFile, m.at.Pos.Line, m.at.Pos.Col
	e.Text, e.Source = m.at.Text, m.source
	return &e
}
