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
	SSH  string // the destination, as ssh has it: alpha, user@alpha, ssh://user@alpha:2222
	// Address is the machine's own address, to which other machines send the packets of links. Here
	// is the address at which this machine is reached from there. Each may be invalid: unknown.
	Address, Here netip.Addr

	at     lnx.Word
	source string // the line
}

// localhost is the name of this machine.
const localhost = "localhost"

// isDestination reports whether ssh may get a text as its destination. No option may: those begin
// with -.
func isDestination(text string) bool {
	return text[0] != '-' && strings.IndexFunc(text, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("_.@:/%[]-", c))
	}) < 0
}

const machineForm = "host NAME ssh USER@MACHINE [address ADDRESS]"

// isMachine reports whether a line declares a machine.
func isMachine(words []lnx.Word) bool {
	return len(words) > 2 && words[0].Text == "host" && words[2].Text == "ssh"
}

// machine reads `host NAME ssh DESTINATION [address ADDRESS]`.
func (r *reader) machine(words []lnx.Word) {
	name := words[1]
	if len(words) != 4 && (len(words) != 6 || words[4].Text != "address") {
		r.text.Wrong(name, "the line must have a host and its ssh destination", machineForm)
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
			"such as user@alpha")
	}
	if len(words) == 6 {
		a, err := netip.ParseAddr(words[5].Text)
		if err != nil || !a.Is4() || a.IsUnspecified() {
			r.text.Wrong(words[5], diagnostic.Quote(words[5].Text)+" is not an address of a host",
				"an IPv4 address of "+name.Text+" that the other hosts reach")
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
		r.text.Wrong(node, node.Text+" already has the host "+r.plan.Nodes[i].host, "one line")
	default:
		r.plan.Nodes[i].host = host.Text
	}
}

// unusedMachines reports each machine without a node.
func (r *reader) unusedMachines() {
	for _, m := range r.plan.Machines {
		if !slices.ContainsFunc(r.plan.Nodes, func(n Node) bool { return n.host == m.Name }) {
			r.text.Wrong(m.at, "host "+m.Name+" has no node",
				"a line `node NAME "+m.Name+"`, or no line for the host")
		}
	}
}

// machine returns the index of the machine with that name; -1: none, as for this machine.
func (p *Plan) machine(name string) int {
	return slices.IndexFunc(p.Machines, func(m Machine) bool { return m.Name == name })
}

// MachineOf returns the machine on which a node runs; nil: this one.
func (p *Plan) MachineOf(node int) *Machine {
	if i := p.machine(p.Nodes[node].host); i >= 0 {
		return &p.Machines[i]
	}
	return nil
}

// Crossing returns the links between two machines that impair no packets.
func (p *Plan) Crossing() (list []int) {
	for i, l := range p.Links {
		if l.Words == "" && p.MachineOf(l.A) != p.MachineOf(l.B) {
			list = append(list, i)
		}
	}
	return list
}

// Addrs returns the addresses of the two ends of a link.
func (p *Plan) Addrs(link int) (a, b netip.Addr) {
	if p.course {
		return courseAddrs(link)
	}
	ends := p.addrs(link)
	return ends[0].Addr(), ends[1].Addr()
}

// udpHost returns the address at which a node receives the packets of a link to another node: that
// of its machine if the link leaves it, else the loopback.
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
	return a.String()
}

// OnMachine reports the errors that a machine has with its nodes' files at the word of the plan
// that can correct them: the first port, or the machine's name.
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
