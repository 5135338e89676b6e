package lnx

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// directive is one directive of the new grammar: its keywords, its form, its number of words, and
// its reader and writer.
type directive struct {
	name  string // one or two words
	usage string
	least int
	most  int
	read  func(*parser, line)
	write func(*bytes.Buffer, *Config) // writes the directive; nil: another directive writes it
}

const (
	usageInterface = "interface NAME ADDR/LEN HOST:PORT"
	usageAddress   = "address NAME ADDR/LEN, or auto"
	usageAdvertise = "advertise NAME"
	usageTun       = "interface NAME ADDR/LEN tun:DEV [kernel ADDR … [routes PREFIX/LEN …]]"
	usageRoute     = "route PREFIX/LEN via ADDR [metric N], or blackhole, unreachable or prohibit"
	usageNeighbor  = "neighbor ADDR at HOST:PORT via NAME"
	usageImpair    = "impair NAME [in, out or both] ARG …, with the arguments of tc-netem"
)

// directives lists all directives in the order of the documentation.
var directives = slices.Concat([]directive{
	{
		"interface", usageInterface + " or " + usageTun, 4, 8 + maxTunRoutes,
		(*parser).readInterface, formatInterfaces,
	},
	{"address", usageAddress, 3, 3, (*parser).readAddress, nil},
	{
		wordAdvertise, usageAdvertise, 2, 2,
		func(p *parser, l line) {
			p.addresses = append(p.addresses, addressLine{name: l.words[1], at: l.words[0]})
		}, nil,
	},
	{
		"neighbor", usageNeighbor, 2, 6, (*parser).readNeighbor,
		func(b *bytes.Buffer, c *Config) {
			for _, n := range c.Neighbors {
				fmt.Fprintf(b, "neighbor %s at %s via %s\n", n.Addr, n.UDP, n.Iface)
			}
		},
	},
	{
		"routing", "routing rip, rip2, ripng, static, none or rip ripng", 2, 3,
		(*parser).readRouting,
		func(b *bytes.Buffer, c *Config) { fmt.Fprintf(b, "routing %s\n", c.Routing) },
	},
	{
		"route", usageRoute, 2, 6, (*parser).readRoute,
		func(b *bytes.Buffer, c *Config) {
			for _, r := range c.Routes {
				fmt.Fprintf(b, "route %s %s\n", r.Prefix, r.words())
			}
		},
	},
	linkTable.directive(nil),
	{
		"impair", usageImpair, 3, maxImpairWords, (*parser).readImpair,
		func(b *bytes.Buffer, c *Config) {
			for _, l := range c.Impair {
				fmt.Fprintf(b, "impair %s %s %s\n", l.Iface, l.Way, l.Text())
			}
		},
	},
	{
		"socket", "socket shared", 2, 2, (*parser).readSocket,
		func(b *bytes.Buffer, c *Config) {
			if c.SharedSocket {
				b.WriteString("socket shared\n")
			}
		},
	},
}, ripDirectives, tcpDirectives, icmpDirectives, ipDirectives, dnsDirectives,
	forwardDirectives, natDirectives)

// formatOrder lists the directives that Format writes first. The others follow in the order of
// directives.
var formatOrder = []string{
	"socket", "interface", "link", "impair", "neighbor", "routing", "route",
	"rip advertise-to", "rip originate", "rip redistribute", "rip periodic-update-rate",
	"rip route-timeout-threshold", "rip periodic-update-offset", "rip garbage-collection-time",
	"rip hold-down", "rip ask-after", "rip triggered-update-delay", "rip withdraw-refused",
	"rip entry-size", "rip interface", "tcp profile",
}

// Format returns the Config as text of the new grammar, whatever grammar it came from. Parse
// returns an equal Config for this text, except for Grammar, Name and the positions.
func (c *Config) Format() []byte {
	var b bytes.Buffer
	for _, name := range formatOrder {
		i := slices.IndexFunc(directives, func(d directive) bool { return d.name == name })
		directives[i].write(&b, c)
	}
	for _, d := range directives {
		if d.write != nil && !slices.Contains(formatOrder, d.name) {
			d.write(&b, c)
		}
	}
	return b.Bytes()
}

// findDirective returns a directive that starts with the word, or nil.
func findDirective(first string) *directive {
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		if name == first {
			return &directives[i]
		}
	}
	return nil
}

func directiveNames() []string {
	var names []string
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// secondWords returns the words that can follow the first word of a directive.
func secondWords(first string) []string {
	var names []string
	for i := range directives {
		if name, second, _ := strings.Cut(directives[i].name, " "); name == first && second != "" {
			names = append(names, second)
		}
	}
	return names
}

// readDirective reads a line of the new grammar.
func (p *parser) readDirective(l line) {
	before := len(p.report.errs)
	p.directives++
	if d := p.directiveOf(l); d != nil && p.report.words(l, d.least, d.most, d.usage) {
		d.read(p, l)
	}
	if len(p.report.errs) > before {
		p.suppressMissing(l)
	}
}

// directiveOf returns the line's directive. It records an error if the directive is unknown.
func (p *parser) directiveOf(l line) *directive {
	first := l.keyword()
	seconds := secondWords(first.Text)
	if len(seconds) == 0 {
		d := findDirective(first.Text)
		if d == nil {
			p.unknown++
			names := directiveNames()
			p.report.bad(first, "not a directive"+diagnostic.DidYouMean(first.Text, names),
				diagnostic.OneOf(names))
		}
		return d
	}
	if len(l.words) == 1 {
		p.report.add(l.end, "", first.Text+" is incomplete",
			first.Text+" and then "+diagnostic.OneOf(seconds))
		return nil
	}
	second := l.words[1]
	for i := range directives {
		if directives[i].name == first.Text+" "+second.Text {
			return &directives[i]
		}
	}
	p.report.bad(second,
		"not a keyword of "+first.Text+diagnostic.DidYouMean(second.Text, seconds),
		diagnostic.OneOf(seconds))
	return nil
}

func (p *parser) readInterface(l line) {
	name, okName := p.report.name(l.words[1])
	addr, okAddr := p.report.addrLen(l.words[2])
	i := Interface{
		Name: name, Pos: l.words[1].Pos, addrAt: l.words[2].Pos, udpAt: l.words[3].Pos,
	}
	i.addAddr(addr)
	okUDP := false
	if device, tun := strings.CutPrefix(l.words[3].Text, tunPrefix); tun {
		i.Tun, okUDP = p.readTun(l, device)
	} else {
		i.UDP, okUDP = p.report.hostPort(l.words[3])
		okUDP = p.report.words(l, 4, 4, usageInterface) && okUDP
	}
	if okName && okAddr && okUDP {
		p.addInterface(i)
	}
}

func (i *Interface) addAddr(p netip.Prefix) {
	if p.Addr().Is6() {
		i.IPv6 = append(i.IPv6, p)
	} else {
		i.Addr = p
	}
}

// readAddress reads a line that adds an address to an interface.
func (p *parser) readAddress(l line) {
	addr, ok := netip.Prefix{}, l.words[2].Text == wordAuto
	if !ok {
		addr, ok = p.report.addrLen(l.words[2])
	}
	if ok {
		p.addresses = append(p.addresses, addressLine{l.words[1], l.words[2], addr})
	}
}

// These are the keywords of lines about router advertisements.
const (
	wordAuto      = "auto"
	wordAdvertise = "advertise"
)

// addressLine is an address line, which may precede the line of its interface. In a line about
// router advertisements addr is invalid, and at is the keyword.
type addressLine struct {
	name, at Word
	addr     netip.Prefix
}

// addAddresses adds the addresses of address lines to their interfaces. An interface has at most
// one IPv4 address, and at most one IPv6 address in each subnet.
func (p *parser) addAddresses() {
	for _, l := range p.addresses {
		i, ok := p.cfg.Interface(l.name.Text)
		switch {
		case !ok:
			p.unknownInterface(l.name)
		case !l.addr.IsValid():
			p.setAdverts(l, i)
		case l.addr.Addr().Is4() && i.Addr.IsValid():
			p.report.bad(l.at, "a second IPv4 address of "+i.Name, "an IPv6 address")
		case slices.ContainsFunc(i.IPv6, l.addr.Overlaps):
			p.report.bad(l.at, "a second address of a subnet of "+i.Name,
				"an address of another subnet")
		default:
			i.addAddr(l.addr)
		}
	}
	for _, l := range p.addresses {
		if i, ok := p.cfg.Interface(l.name.Text); ok && l.at.Text == wordAdvertise {
			p.checkAdvertise(l.at, i)
		}
	}
}

// setAdverts applies a line about router advertisements.
func (p *parser) setAdverts(l addressLine, i *Interface) {
	switch {
	case i.Tun == nil:
		p.report.add(l.at.Pos, l.at.Text, i.Name+" is a UDP link, whose nodes are in the file",
			"an interface with a TUN device")
	case !p.once(l.at.Text+" of "+i.Name, l.at):
	case l.at.Text == wordAuto:
		i.Tun.Auto = true
	default:
		i.Tun.Advertise = true
	}
}

// checkAdvertise records an error for an interface that has nothing to advertise.
func (p *parser) checkAdvertise(at Word, i *Interface) {
	switch {
	case i.Tun == nil: // another check reports this
	case i.Tun.Auto:
		p.report.add(at.Pos, at.Text, i.Name+" gets its addresses from a router",
			"either this line or address "+i.Name+" auto")
	case !slices.ContainsFunc(i.IPv6, func(a netip.Prefix) bool {
		return !a.Addr().IsLinkLocalUnicast()
	}):
		p.report.add(at.Pos, at.Text, i.Name+" has no IPv6 network to advertise",
			"address "+i.Name+" ADDR/64 with an IPv6 address")
	}
}

func (p *parser) readNeighbor(l line) {
	okForm := p.report.fixed(l, 2, "at", usageNeighbor)
	if !okForm && len(l.words) < 6 || !p.report.words(l, 6, 6, usageNeighbor) {
		return
	}
	okForm = p.report.fixed(l, 4, "via", usageNeighbor) && okForm
	addr, okAddr := p.report.addr(l.words[1])
	udp, okUDP := p.report.destination(l.words[3])
	if okForm && okAddr && okUDP {
		p.cfg.Neighbors = append(p.cfg.Neighbors, Neighbor{
			Addr: addr, UDP: udp, Iface: l.words[5].Text,
			Pos: l.words[1].Pos, udpAt: l.words[3].Pos, ifaceAt: l.words[5].Pos,
		})
	}
}

func (p *parser) readRouting(l line) {
	kinds := []Routing{
		RoutingRIP, RoutingRIP2, RoutingRIPng, RoutingStatic, RoutingNone, RoutingBoth,
	}
	names := []string{"rip", "rip2", "ripng", "static", "none", "rip ripng"}
	said := l.words[1].Text
	if len(l.words) > 2 {
		said += " " + l.words[2].Text
	}
	i := slices.Index(names, said)
	if i < 0 && slices.Contains(names, l.words[1].Text) {
		p.report.bad(l.words[2], "not a protocol that runs with "+l.words[1].Text,
			"rip ripng; rip2 includes RIPng")
		return
	}
	if i < 0 {
		p.report.bad(l.words[1], "not a protocol"+diagnostic.DidYouMean(l.words[1].Text, names),
			diagnostic.OneOf(names[:len(names)-1])+"; `rip ripng` runs both")
		return
	}
	if p.once("routing", l.keyword()) {
		p.cfg.Routing = kinds[i]
	}
}

func formatInterfaces(b *bytes.Buffer, c *Config) {
	for _, i := range c.Interfaces {
		addrs, where := i.Addrs(), i.UDP.String()
		if i.Tun != nil {
			where = tunPrefix + i.Tun.Device + i.Tun.End()
		}
		fmt.Fprintf(b, "interface %s %s %s\n", i.Name, addrs[0], where)
		for _, a := range addrs[1:] {
			fmt.Fprintf(b, "address %s %s\n", i.Name, a)
		}
		if i.Tun != nil && i.Tun.Auto {
			fmt.Fprintf(b, "address %s %s\n", i.Name, wordAuto)
		}
		if i.Tun != nil && i.Tun.Advertise {
			fmt.Fprintf(b, "%s %s\n", wordAdvertise, i.Name)
		}
	}
}

// readSocket reads the directive that makes all interfaces share one socket, as in the files of
// 2013 to 2022.
func (p *parser) readSocket(l line) {
	if p.report.fixed(l, 1, "shared", "socket shared") && p.once("socket", l.keyword()) {
		p.cfg.SharedSocket = true
	}
}

// tunPrefix precedes the name of a device in place of a UDP address.
const tunPrefix = "tun:"

// maxTunRoutes limits the routes of one device.
const maxTunRoutes = 32

// readTun reads the device. readKernels reads the words after it later, because they depend on all
// addresses of the interface.
func (p *parser) readTun(l line, device string) (*Tun, bool) {
	if len(l.words) > 4 {
		p.tuns[l.words[1].Pos] = l
	}
	name, ok := p.report.name(part(l.words[3], len(tunPrefix), device))
	return &Tun{Device: name}, ok
}

// readKernels reads the words of the interface lines about the kernel's ends.
func (p *parser) readKernels() {
	for n := range p.cfg.Interfaces {
		i := &p.cfg.Interfaces[n]
		l, ok := p.tuns[i.Pos]
		if !ok || !p.report.fixed(l, 4, "kernel", usageTun) ||
			!p.report.words(l, 6, len(l.words), usageTun) {
			continue
		}
		rest := l.words[5:]
		for ; len(rest) > 0 && rest[0].Text != "routes"; rest = rest[1:] {
			ok = p.readKernel(i, rest[0]) && ok
		}
		least := len(l.words) - len(rest) + 2 // a prefix must follow the keyword
		if !ok || len(rest) == 0 ||
			!p.report.words(l, least, least-1+maxTunRoutes, usageTun) {
			continue
		}
		for _, w := range rest[1:] {
			p.readTunRoute(i, w)
		}
	}
}

// readKernel reads an address of the kernel's end.
func (p *parser) readKernel(i *Interface, w Word) bool {
	a, ok := p.report.addr(w)
	if !ok {
		return false
	}
	on, found := i.on(a)
	why, want := "", "an address of "+i.subnets()
	switch {
	case a.Is6() && a.IsLinkLocalUnicast():
		why = "a link-local address, of which the kernel has its own"
	case !found:
		why = "not on the interface's subnet"
	case i.Tun.Reaches(a):
		why, want = "a second address of its family", "one IPv4 and one IPv6 address at most"
	default:
		why, want = NeighborFault(a, on), "another address of "+i.subnets()
	}
	if why != "" {
		p.report.bad(w, why, want)
		return false
	}
	i.Tun.Kernel = append(i.Tun.Kernel, a)
	return true
}

// Reaches reports whether the kernel's end has an address of a's family.
func (t *Tun) Reaches(a netip.Addr) bool {
	return slices.ContainsFunc(t.Kernel, func(k netip.Addr) bool { return k.Is4() == a.Is4() })
}

// readTunRoute reads a prefix that the kernel routes through the node.
func (p *parser) readTunRoute(i *Interface, w Word) {
	prefix, ok := p.report.prefix(w)
	ours := func(a netip.Prefix) bool { return a.Masked() == prefix }
	switch {
	case !ok:
	case slices.ContainsFunc(i.Addrs(), ours):
		p.report.bad(w, "the link itself, to which the kernel needs no route", usageTun)
	case slices.Contains(i.Tun.Routes, prefix):
		p.report.bad(w, "a duplicate route", usageTun)
	case !i.Tun.Reaches(prefix.Addr()):
		p.report.bad(w, "of another family than the addresses of the kernel's end",
			"an address of that family after `kernel`")
	default:
		i.Tun.Routes = append(i.Tun.Routes, prefix)
	}
}
