package lnx

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tidepool-net/tidepool/internal/diagnostic"
)

// directive is one directive of the new grammar: the words that open it, its form, how many words
// it has, what reads it, and what writes all that it says of a Config.
type directive struct {
	name  string // one word, or two
	usage string
	least int
	most  int
	read  func(*parser, line)
	write func(*bytes.Buffer, *Config) // nil: another directive writes it
}

const (
	usageInterface = "interface NAME ADDR/LEN HOST:PORT"
	usageTun       = "interface NAME ADDR/LEN tun:DEV [kernel ADDR [routes PREFIX/LEN …]]"
	usageRoute     = "route PREFIX/LEN via ADDR [metric N], or blackhole, unreachable or prohibit"
	usageNeighbor  = "neighbor ADDR at HOST:PORT via NAME"
	usageImpair    = "impair NAME [in, out or both] ARG …, with the arguments of tc-netem"
)

// directives are all of them, in the order of the documentation.
var directives = slices.Concat([]directive{
	{
		"interface", usageInterface + " or " + usageTun, 4, 7 + maxTunRoutes,
		(*parser).readInterface, formatInterfaces,
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
		"routing", "routing rip, rip2, static or none", 2, 2, (*parser).readRouting,
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
}, ripDirectives, tcpDirectives, icmpDirectives, ipDirectives, forwardDirectives)

// formatOrder is how Format begins; the other directives follow in the order of the table.
var formatOrder = []string{
	"socket", "interface", "link", "impair", "neighbor", "routing", "route",
	"rip advertise-to", "rip originate", "rip redistribute", "rip periodic-update-rate",
	"rip route-timeout-threshold", "rip periodic-update-offset", "rip garbage-collection-time",
	"rip hold-down", "rip ask-after", "rip triggered-update-delay", "rip withdraw-refused",
	"rip entry-size", "rip interface", "tcp profile",
}

// Format returns the Config as text of the new grammar, whatever grammar it
// came from. Parse makes the same Config of it, but for its Grammar, its Name
// and the places in the file.
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

// findDirective returns a directive that starts with the word, nil if none does.
func findDirective(first string) *directive {
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		if name == first {
			return &directives[i]
		}
	}
	return nil
}

// directiveNames returns the first words of all directives.
func directiveNames() []string {
	var names []string
	for i := range directives {
		name, _, _ := strings.Cut(directives[i].name, " ")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// secondWords returns the words that can follow the first of a directive.
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
		p.excuse(l)
	}
}

// directiveOf returns the line's directive, and records an error if the line has no known one.
func (p *parser) directiveOf(l line) *directive {
	first := l.keyword()
	seconds := secondWords(first.Text)
	if len(seconds) == 0 {
		d := findDirective(first.Text)
		if d == nil {
			p.strange++
			names := directiveNames()
			p.report.bad(first, "not a directive"+diagnostic.DidYouMean(first.Text, names),
				oneOf(names))
		}
		return d
	}
	if len(l.words) == 1 {
		p.report.add(l.end, "", first.Text+" is incomplete",
			first.Text+" and then "+oneOf(seconds))
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
		oneOf(seconds))
	return nil
}

// oneOf joins words to "a, b or c".
func oneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (p *parser) readInterface(l line) {
	name, okName := p.report.name(l.words[1])
	addr, okAddr := p.report.addrLen(l.words[2])
	i := Interface{
		Name: name, Addr: addr,
		Pos: l.words[1].Pos, addrAt: l.words[2].Pos, udpAt: l.words[3].Pos,
	}
	okUDP := false
	if device, tun := strings.CutPrefix(l.words[3].Text, tunPrefix); tun {
		i.Tun, okUDP = p.report.readTun(l, device, addr)
	} else {
		i.UDP, okUDP = p.report.hostPort(l.words[3])
		okUDP = p.report.words(l, 4, 4, usageInterface) && okUDP
	}
	if okName && okAddr && okUDP {
		p.addInterface(i)
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
	kinds := []Routing{RoutingRIP, RoutingRIP2, RoutingStatic, RoutingNone}
	i := slices.IndexFunc(kinds, func(r Routing) bool { return r.String() == l.words[1].Text })
	if i < 0 {
		names := []string{"rip", "rip2", "static", "none"}
		p.report.bad(l.words[1], "not a protocol"+diagnostic.DidYouMean(l.words[1].Text, names),
			oneOf(names))
		return
	}
	if p.once("routing", l.keyword()) {
		p.cfg.Routing = kinds[i]
	}
}

// formatInterfaces writes the interface lines.
func formatInterfaces(b *bytes.Buffer, c *Config) {
	for _, i := range c.Interfaces {
		fmt.Fprintf(b, "interface %s %s ", i.Name, i.Addr)
		switch {
		case i.Tun == nil:
			b.WriteString(i.UDP.String())
		default:
			b.WriteString(tunPrefix + i.Tun.Device)
		}
		if i.Tun != nil && i.Tun.Kernel.IsValid() {
			fmt.Fprintf(b, " kernel %s", i.Tun.Kernel)
			for n, p := range i.Tun.Routes {
				if n == 0 {
					b.WriteString(" routes")
				}
				b.WriteString(" " + p.String())
			}
		}
		b.WriteByte('\n')
	}
}

// readSocket reads the directive by which a file of the new grammar can say
// what those of 2013 to 2022 imply.
func (p *parser) readSocket(l line) {
	if p.report.fixed(l, 1, "shared", "socket shared") && p.once("socket", l.keyword()) {
		p.cfg.SharedSocket = true
	}
}

// tunPrefix stands before a device where a UDP address would stand.
const tunPrefix = "tun:"

// maxTunRoutes bounds the routes of one device.
const maxTunRoutes = 32

// readTun reads what follows an interface's address if it is a TUN device.
func (r *report) readTun(l line, device string, addr netip.Prefix) (*Tun, bool) {
	name, ok := r.name(part(l.words[3], len(tunPrefix), device))
	tun := &Tun{Device: name}
	if len(l.words) == 4 {
		return tun, ok
	}
	if !r.fixed(l, 4, "kernel", usageTun) || !r.fixed(l, 6, "routes", usageTun) {
		return tun, false
	}
	least := 6
	if len(l.words) > least {
		least = 8 // a prefix stands behind the word
	}
	if !r.words(l, least, 7+maxTunRoutes, usageTun) {
		return tun, false
	}
	kernel, okKernel := r.addr(l.words[5])
	if !okKernel || !addr.IsValid() {
		return tun, false
	}
	switch why := reserved(kernel, addr.Masked()); {
	case kernel == addr.Addr():
		r.bad(l.words[5], "the node's own address", "another address of "+addr.Masked().String())
	case !addr.Contains(kernel):
		r.bad(l.words[5], "not on the interface's subnet", "an address of "+addr.Masked().String())
	case why != "":
		r.bad(l.words[5], why, "an address of a node")
	default:
		tun.Kernel = kernel
		return tun, r.readTunRoutes(l, addr.Masked(), tun) && ok
	}
	return tun, false
}

// readTunRoutes reads the prefixes that the kernel is to route through the node.
func (r *report) readTunRoutes(l line, link netip.Prefix, tun *Tun) bool {
	ok := true
	for _, w := range l.words[min(len(l.words), 7):] {
		prefix, okPrefix := r.prefix(w)
		switch {
		case !okPrefix:
			ok = false
		case prefix == link:
			r.bad(w, "the link itself, to which the kernel needs no route", usageTun)
			ok = false
		case slices.Contains(tun.Routes, prefix):
			r.bad(w, "a duplicate route", usageTun)
			ok = false
		default:
			tun.Routes = append(tun.Routes, prefix)
		}
	}
	return ok
}
